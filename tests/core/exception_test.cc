// SPDX-License-Identifier: Apache-2.0
//
// What the C++ runtime keeps of a thread's exceptions stays with that thread.

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

struct First : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Second : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool NoExceptionIsAbout() {
  return std::current_exception() == nullptr && std::uncaught_exceptions() == 0;
}

// Two threads wait, each in a handler of its own, and are resumed in the order in which
// they came - not the reverse, which would hide a mix-up.
BOBBIN_TEST(ExceptionTest, AHandlerThatWaitsKeepsItsException) {
  Event first_go;
  Event second_go;
  ThreadProbe probes[2];
  TaskGroup group;
  group.Spawn([&] {
    try {
      throw First("first");
    } catch (const First&) {
      probes[0].Attach();
      EXPECT_OK(first_go.Wait());
      EXPECT_NE(std::current_exception(), nullptr);
      try {
        throw;
      } catch (const First& error) {
        EXPECT_STREQ(error.what(), "first");
      }
    }
    EXPECT_TRUE(NoExceptionIsAbout());
  });
  probes[0].AwaitParked();
  group.Spawn([&] {
    EXPECT_TRUE(NoExceptionIsAbout());
    try {
      throw Second("second");
    } catch (const Second&) {
      probes[1].Attach();
      EXPECT_OK(second_go.Wait());
      try {
        throw;
      } catch (const Second& error) {
        EXPECT_STREQ(error.what(), "second");
      }
    }
    EXPECT_TRUE(NoExceptionIsAbout());
  });
  probes[1].AwaitParked();
  EXPECT_TRUE(NoExceptionIsAbout());
  group.Spawn([] { EXPECT_TRUE(NoExceptionIsAbout()); });
  first_go.Set();
  Yield();
  second_go.Set();
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(NoExceptionIsAbout());
}

// The destructor waits while the exception is on its way.
class WaitsWhileUnwinding {
 public:
  explicit WaitsWhileUnwinding(std::atomic<int>& waited) : waited_(waited) {}
  ~WaitsWhileUnwinding() {
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    Yield();
    EXPECT_OK(SleepFor(std::chrono::microseconds(20)));
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    // Another one, born and caught meanwhile.
    try {
      throw Second("inner");
    } catch (const Second& error) {
      Yield();
      EXPECT_STREQ(error.what(), "inner");
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
    ++waited_;
  }

 private:
  std::atomic<int>& waited_;
};

BOBBIN_TEST(ExceptionTest, ADestructorMayWaitWhileAnExceptionIsOnItsWay) {
  std::atomic<int> waited{0};
  std::atomic<int> caught{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, i] {
      try {
        const WaitsWhileUnwinding guard(waited);
        throw First(std::to_string(i));
      } catch (const First& error) {
        EXPECT_EQ(error.what(), std::to_string(i));
        ++caught;
      }
      EXPECT_TRUE(NoExceptionIsAbout());
    });
    group.Spawn([] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(NoExceptionIsAbout());
        Yield();
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(waited, 8);
  EXPECT_EQ(caught, 8);
}

// Handlers in handlers, to a random depth, each of which waits.
void ThrowAndWait(int depth, Random& random) {
  const std::string text = std::to_string(random.Next());
  try {
    if (random.OneIn(2)) throw First(text);
    throw Second(text);
  } catch (const std::runtime_error& error) {
    if (random.OneIn(2)) Yield();
    if (depth > 0) ThrowAndWait(depth - 1, random);
    EXPECT_EQ(error.what(), text);
    if (random.OneIn(8)) {
      EXPECT_OK(SleepFor(std::chrono::microseconds(random.Below(50))));
    }
    try {
      throw;
    } catch (const std::runtime_error& again) {
      EXPECT_EQ(&again, &error);
    }
  }
}

BOBBIN_TEST(ExceptionTest, NestedHandlersOfManyThreadsDoNotMix) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 12; ++i) {
    group.Spawn([own = random().Fork()]() mutable {
      for (int round = 0; round < Rounds(60); ++round) {
        ThrowAndWait(static_cast<int>(own.Below(5)), own);
        EXPECT_TRUE(NoExceptionIsAbout());
      }
    });
  }
  ASSERT_OK(group.Wait());
}

// Woken from outside, so that the carrier went through its own stack and slept in between.
BOBBIN_FOREIGN_TEST(ExceptionTest, AHandlerSurvivesASleepOfItsCarrier) {
  for (int round = 0; round < Rounds(100); ++round) {
    Event go;
    ThreadProbe probe;
    VirtualThread thread = runtime().Spawn([&] {
      try {
        throw First("kept");
      } catch (const First& error) {
        probe.Attach();
        EXPECT_OK(go.Wait());
        EXPECT_STREQ(error.what(), "kept");
        throw;
      }
    });
    probe.AwaitParked();
    go.Set();
    EXPECT_THROW(static_cast<void>(thread.Join()), First);
    EXPECT_TRUE(NoExceptionIsAbout());
  }
}

// A thread that starts on a stack that another one has just left starts with nothing.
BOBBIN_TEST(ExceptionTest, AThreadThatEndsByAnExceptionLeavesNothingBehind) {
  for (int round = 0; round < Rounds(300); ++round) {
    VirtualThread thrower = Spawn([] { throw First("gone"); });
    VirtualThread next = Spawn([] { EXPECT_TRUE(NoExceptionIsAbout()); });
    ASSERT_OK(next.Join());
    EXPECT_THROW(static_cast<void>(thrower.Join()), First);
  }
}

}  // namespace
}  // namespace bobbin::test
