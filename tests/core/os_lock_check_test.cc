// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "gtest/gtest.h"

#include <bobbin/core/no_suspend.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::test {
namespace {

// Debug builds without sanitizers, which wrap the same functions.
constexpr bool kChecksOsLocks = kChecksDebug && !kUnderSanitizer;

void RunAndDie(void (*body)()) {
  Runtime runtime({.carriers = 1});
  static_cast<void>(runtime.Spawn({.name = "careless"}, body).Join());
}

TEST(OsLockCheckDeathTest, AWaitWithALockOfTheOperatingSystemAborts) {
  if (!kChecksOsLocks) GTEST_SKIP() << "only in debug builds";
  constexpr char kMessage[] =
      "a wait while a lock of the operating system is held.*virtual thread \"careless\"";
  EXPECT_DEATH(RunAndDie([] {
                 std::mutex mutex;
                 const std::lock_guard hold(mutex);
                 Yield();
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 std::recursive_mutex mutex;
                 const std::lock_guard outer(mutex);
                 { const std::lock_guard inner(mutex); }
                 static_cast<void>(SleepFor(std::chrono::milliseconds(1)));
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 std::timed_mutex mutex;
                 static_cast<void>(mutex.try_lock_for(std::chrono::seconds(1)));
                 static_cast<void>(RunBlocking([] {}));
               }),
               kMessage);
  EXPECT_DEATH(RunAndDie([] {
                 std::shared_mutex mutex;
                 const std::shared_lock hold(mutex);
                 static_cast<void>(Spawn([] {}).Join());
               }),
               kMessage);
}

TEST(OsLockCheckDeathTest, ANoSuspendScopeIsStillToldApart) {
  EXPECT_DEATH(RunAndDie([] {
                 const NoSuspendScope scope;
                 Yield();
               }),
               "a wait inside a NoSuspendScope");
}

BOBBIN_TEST(OsLockCheckTest, ALockThatIsGivenBackBeforeTheWaitIsFine) {
  std::mutex mutex;
  std::shared_mutex shared;
  for (int i = 0; i < 1000; ++i) {
    { const std::lock_guard hold(mutex); }
    { const std::shared_lock hold(shared); }
    { const std::unique_lock hold(shared); }
    Yield();
  }
}

BOBBIN_TEST(OsLockCheckTest, WhatCouldNotBeTakenDoesNotCount) {
  std::mutex mutex;
  std::thread holder([&] { mutex.lock(); });
  holder.join();
  EXPECT_FALSE(mutex.try_lock());
  Yield();
}

BOBBIN_TEST(OsLockCheckTest, PlatformThreadsMayHoldThemOverAWait) {
  EXPECT_OK(RunBlocking([] {
    std::mutex mutex;
    const std::lock_guard hold(mutex);
    return SleepFor(std::chrono::milliseconds(1));
  }));
}

}  // namespace
}  // namespace bobbin::test
