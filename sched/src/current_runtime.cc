// SPDX-License-Identifier: Apache-2.0

#include "sched/src/current_runtime.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/sched/internal/current_poller.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/carrier.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

Runtime* CurrentRuntimeOrNull() noexcept {
  Thread& thread = Current();
  if (thread.dispatcher() != nullptr) return &CurrentCarrier()->runtime().facade();
  return static_cast<Runtime*>(static_cast<OsThread&>(thread).runtime());
}

Runtime& CurrentRuntime() {
  Runtime* const runtime = CurrentRuntimeOrNull();
  BOBBIN_CHECK(runtime != nullptr, "no runtime here: a foreign thread spawns with Runtime::Spawn");
  return *runtime;
}

PlatformPool& PoolOf(Runtime& runtime, BlockingLane lane) { return runtime.core().PoolOf(lane); }

Poller* CurrentPoller() noexcept {
  Thread& thread = Current();
  return thread.role() == Role::kVirtual ? &CurrentCarrier()->poller() : nullptr;
}

}  // namespace bobbin::internal
