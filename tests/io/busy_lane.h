// SPDX-License-Identifier: Apache-2.0
//
// BusyLane: keeps all platform threads of a lane busy, so that whoever needs one has to wait.
//
//   Called from   foreign threads next to a runtime.

#ifndef BOBBIN_TESTS_IO_BUSY_LANE_H_
#define BOBBIN_TESTS_IO_BUSY_LANE_H_

#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {

class BusyLane {
 public:
  BusyLane(Runtime& runtime, internal::BlockingLane lane) : probes_(PlatformPoolOptions{}.threads) {
    for (ThreadProbe& probe : probes_) {
      threads_.push_back(runtime.Spawn([this, &probe, lane] {
        return internal::PoolUnlessMayBlock(lane)->RunBlocking([this, &probe] {
          probe.Attach();
          return go_.Wait();
        });
      }));
      probe.AwaitParked();
    }
  }
  void LetGo() {
    go_.Set();
    for (VirtualThread& thread : threads_) EXPECT_OK(thread.Join());
  }

 private:
  Event go_;
  std::vector<ThreadProbe> probes_;
  std::vector<VirtualThread> threads_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_BUSY_LANE_H_
