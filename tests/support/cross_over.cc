// SPDX-License-Identifier: Apache-2.0

#include "tests/support/cross_over.h"

#include <unistd.h>

#include <atomic>

#include <bobbin/core/event.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/current_runtime.h"
#include "sched/src/runtime_core.h"
#include "tests/support/status_matchers.h"

namespace bobbin::test {

void CrossOver() {
  internal::RuntimeCore& runtime = internal::CurrentRuntime().core();
  const pid_t before = gettid();
  while (gettid() == before) {
    Event may_go;
    std::atomic<bool> has_gone{false};
    VirtualThread holder = Spawn([&] {
      const bool is_here = gettid() == before;  // Else it was taken itself.
      may_go.Set();
      while (is_here && !has_gone.load()) runtime.WakeOneToSearch();
    });
    EXPECT_OK(may_go.Wait());
    has_gone.store(true);
    EXPECT_OK(holder.Join());
  }
}

}  // namespace bobbin::test
