// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/no_suspend.h>

#include <chrono>
#include <memory>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::test {
namespace {

BOBBIN_TEST(NoSuspendScopeTest, WhatNeedNotWaitIsAllowedInside) {
  Mutex mutex;
  Event event;
  event.Set();
  const NoSuspendScope outer;
  {
    const NoSuspendScope inner;
    const MutexLock lock(mutex);
    EXPECT_OK(event.Wait());
    const VirtualThread started = Spawn([] {});
    std::move(const_cast<VirtualThread&>(started)).Detach();
  }
}

BOBBIN_TEST(NoSuspendScopeTest, WaitingIsAllowedAgainAfterIt) {
  { const NoSuspendScope scope; }
  EXPECT_OK(SleepFor(std::chrono::microseconds(10)));
  Yield();
}

void RunAndDie(void (*body)()) {
  Runtime runtime({.carriers = 1});
  static_cast<void>(runtime.Spawn({.name = "careless"}, body).Join());
}

TEST(NoSuspendScopeDeathTest, SuspendingInsideAbortsAndNamesTheThread) {
  constexpr char kMessage[] = "a wait inside a NoSuspendScope.*virtual thread \"careless\"";
  EXPECT_DEATH(RunAndDie([] {
                 const NoSuspendScope scope;
                 static_cast<void>(SleepFor(std::chrono::seconds(1)));
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 const NoSuspendScope scope;
                 Yield();
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 const NoSuspendScope outer;
                 { const NoSuspendScope inner; }
                 Yield();
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 const NoSuspendScope scope;
                 static_cast<void>(Spawn([] {}).Join());
               }),
               kMessage);
}

TEST(NoSuspendScopeDeathTest, EndingAThreadInsideAborts) {
  EXPECT_DEATH(RunAndDie([] { static_cast<void>(std::make_unique<NoSuspendScope>().release()); }),
               "a virtual thread ends inside a scope that it began");
}

}  // namespace
}  // namespace bobbin::test
