// SPDX-License-Identifier: Apache-2.0
//
// What stands in the place of the MySQL workload where its client library is missing.

#include <bobbin/core/status.h>

#include "bench/compare/service.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

absl::Status Absent() {
  return MakeStatus(absl::StatusCode::kUnavailable,
                    "libmariadb was missing when this program was built");
}

absl::StatusOr<Figures> Run(const Trial&) { return Absent(); }
absl::StatusOr<std::unique_ptr<Service>> Serve() { return Absent(); }

}  // namespace

const Workload kMySqlWorkload = {
    .name = "mysql",
    .title = "every thread asks MariaDB: not in this program",
    .latency = "none",
    .concurrency_max = 1000,
    .run = Run,
    .serve = Serve,
};

}  // namespace bobbin::compare
