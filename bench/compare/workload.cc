// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/workload.h"

namespace bobbin::compare {

const Workload* WorkloadNamed(std::string_view name) {
  for (const Workload* workload : kWorkloads) {
    if (workload->name == name) return workload;
  }
  return nullptr;
}

}  // namespace bobbin::compare
