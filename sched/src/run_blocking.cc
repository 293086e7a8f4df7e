// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>
#include <bobbin/core/role.h>
#include <bobbin/sched/run_blocking.h>

#include "sched/src/current_runtime.h"

namespace bobbin::internal {

PlatformPool* PoolUnlessMayBlock(BlockingLane lane) {
  const Role role = CurrentRole();
  if (role == Role::kPlatform || role == Role::kForeign) return nullptr;
  Runtime* const runtime = CurrentRuntimeOrNull();
  BOBBIN_CHECK(runtime != nullptr, "a carrier without a runtime");
  return &PoolOf(*runtime, lane);
}

}  // namespace bobbin::internal
