// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>

#include "sched/src/stop_signals.h"

namespace bobbin::internal {

void WatchStopSignals(const std::vector<int>&, LifecycleCore&) {
  BOBBIN_CHECK(false, "a simulation handles no signals");
}

void ForgetStopSignals(LifecycleCore&) noexcept {}

}  // namespace bobbin::internal
