// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/internal/housekeeping.h>

#include "sched/src/current_runtime.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

HousekeepingScope::HousekeepingScope() noexcept : runtime_(CurrentRuntime().core()) {
  runtime_.HousekeeperBegins();
}

HousekeepingScope::~HousekeepingScope() { runtime_.HousekeeperEnds(); }

}  // namespace bobbin::internal
