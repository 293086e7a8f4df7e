// SPDX-License-Identifier: Apache-2.0

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/role.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

BOBBIN_TEST(VirtualThreadTest, JoinReturnsTheStatusOfTheBody) {
  EXPECT_OK(Spawn([] {}).Join());
  EXPECT_OK(Spawn([] { return absl::OkStatus(); }).Join());
  EXPECT_EQ(Spawn([] { return absl::DataLossError("gone"); }).Join(), absl::DataLossError("gone"));
}

BOBBIN_TEST(VirtualThreadTest, ItHasANumberANameAndARole) {
  std::set<uint64_t> ids = {this_vthread::Id()};
  EXPECT_EQ(this_vthread::Name(), "test");
  for (int i = 0; i < 20; ++i) {
    uint64_t id = 0;
    VirtualThread thread = Spawn({.name = std::string("number ") + std::to_string(i)}, [&, i] {
      id = this_vthread::Id();
      EXPECT_EQ(this_vthread::Name(), "number " + std::to_string(i));
      EXPECT_EQ(CurrentRole(), Role::kVirtual);
      EXPECT_EQ(DescribeCurrentThread(), "virtual thread \"number " + std::to_string(i) +
                                             "\" (id " + std::to_string(id) + ")");
    });
    EXPECT_TRUE(ids.insert(thread.Id()).second);
    const uint64_t told = thread.Id();
    ASSERT_OK(thread.Join());
    EXPECT_EQ(id, told);
  }
}

TEST(VirtualThreadTest, OtherThreadsHaveNeitherNumberNorName) {
  EXPECT_EQ(this_vthread::Id(), 0);
  EXPECT_EQ(this_vthread::Name(), "");
  EXPECT_EQ(CurrentRole(), Role::kForeign);
}

BOBBIN_TEST(VirtualThreadTest, IsDoneTurnsTrueWhenTheBodyHasReturned) {
  Event go;
  VirtualThread thread = Spawn([&] { return go.Wait(); });
  EXPECT_TRUE(thread.is_joinable());
  Yield();
  EXPECT_FALSE(thread.IsDone());
  go.Set();
  AwaitTrue([&] { return thread.IsDone(); });
  ASSERT_OK(thread.Join());
  EXPECT_FALSE(thread.is_joinable());
}

BOBBIN_TEST(VirtualThreadTest, TheDestructorCancelsAndJoins) {
  Event never;
  std::atomic<bool> has_ended{false};
  {
    const VirtualThread thread = Spawn({.placement = Placement::kSpread}, [&] {
      EXPECT_THAT(never.Wait(), StatusIs(kCancelled));
      has_ended = true;
    });
  }
  EXPECT_TRUE(has_ended);
}

BOBBIN_TEST(VirtualThreadTest, AssigningToAHandleCancelsAndJoinsWhatItHeld) {
  Event never;
  std::atomic<bool> has_ended{false};
  VirtualThread thread = Spawn([&] {
    EXPECT_THAT(never.Wait(), StatusIs(kCancelled));
    has_ended = true;
  });
  thread = Spawn([] {});
  EXPECT_TRUE(has_ended);
  VirtualThread moved = std::move(thread);
  EXPECT_FALSE(thread.is_joinable());  // NOLINT: what a moved-from handle promises.
  ASSERT_OK(moved.Join());
  moved = VirtualThread();
  EXPECT_FALSE(moved.is_joinable());
}

BOBBIN_TEST(VirtualThreadTest, ADetachedThreadLivesOnAndIsWaitedForAtTheEnd) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  Spawn([done]() -> absl::Status {
    absl::Status slept = SleepFor(milliseconds(2));
    *done = true;
    return slept;
  }).Detach();
  // One that has ended already, too.
  VirtualThread ended = Spawn([] {});
  AwaitTrue([&] { return ended.IsDone(); });
  std::move(ended).Detach();
  AwaitTrue([&] { return done->load(); });
}

BOBBIN_TEST(VirtualThreadTest, AnInterruptedJoinLeavesTheThreadJoinable) {
  Event go;
  VirtualThread thread = Spawn([&] { return go.Wait(); });
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(thread.Join(), StatusIs(kDeadlineExceeded));
    EXPECT_TRUE(thread.is_joinable());
    EXPECT_THAT(thread.Join(), StatusIs(kDeadlineExceeded));
    go.Set();
    AwaitTrue([&] { return thread.IsDone(); });
    // Its result is there: nothing to wait for.
    EXPECT_OK(thread.Join());
  }
  EXPECT_FALSE(thread.is_joinable());
}

// Nobody else is ready: the joiner lets the new one go first, and need not wait.
BOBBIN_TEST(VirtualThreadTest, AThreadThatEndsAtOnceIsJoinedWithoutAWait) {
  const uint64_t parks = runtime().Statistics().parks;
  for (int i = 0; i < 10; ++i) EXPECT_OK(Spawn([] {}).Join());
  if (carriers() == 1) {
    EXPECT_EQ(runtime().Statistics().parks, parks);
  }
}

// A request to stop that comes while the other one goes first is not overlooked.
BOBBIN_TEST(VirtualThreadTest, WhoIsCancelledByTheOneThatGoesFirstDoesNotWait) {
  Event go;
  VirtualThread joiner;
  Event is_known;
  joiner = Spawn([&] {
    EXPECT_OK(is_known.Wait());
    VirtualThread other = Spawn([&] {
      joiner.Cancel();
      const CancelShield shield;
      return go.Wait();
    });
    EXPECT_THAT(other.Join(), StatusIs(kCancelled));
    go.Set();
    const CancelShield shield;
    EXPECT_OK(other.Join());
  });
  is_known.Set();
  AwaitTrue([&] { return joiner.IsDone(); });
  EXPECT_OK(joiner.Join());
}

// What the body throws, the joiner gets.
BOBBIN_TEST(VirtualThreadTest, JoinRethrowsTheExceptionOfTheBody) {
  struct OnlyMoved {
    explicit OnlyMoved(int from) : number(from) {}
    OnlyMoved(OnlyMoved&&) = default;
    int number;
  };
  VirtualThread thread = Spawn([] { throw std::invalid_argument("bad"); });
  try {
    static_cast<void>(thread.Join());
    ADD_FAILURE() << "Join did not throw";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "bad");
  }
  EXPECT_FALSE(thread.is_joinable());
  thread = Spawn([] { throw 7; });
  EXPECT_THROW(static_cast<void>(thread.Join()), int);
  thread = Spawn([] { throw OnlyMoved(3); });
  EXPECT_THROW(static_cast<void>(thread.Join()), OnlyMoved);

  // The carriers are none the worse for it.
  TaskGroup group({.placement = Placement::kSpread});
  std::atomic<int> ran{0};
  const int threads = Rounds(1000);
  for (int i = 0; i < threads; ++i) group.Spawn([&] { ++ran; });
  ASSERT_OK(group.Wait());
  EXPECT_EQ(ran, threads);
}

BOBBIN_TEST(VirtualThreadTest, TheDestructorDropsStatusAndException) {
  for (int i = 0; i < 3; ++i) {
    const VirtualThread failed = Spawn([] { return absl::DataLossError("gone"); });
    const VirtualThread threw = Spawn([] { throw std::runtime_error("gone"); });
  }
}

BOBBIN_FOREIGN_TEST(VirtualThreadTest, AForeignThreadSpawnsJoinsAndCancels) {
  EXPECT_OK(runtime().Spawn([] {}).Join());
  VirtualThread thrower = runtime().Spawn([] { throw std::runtime_error("x"); });
  EXPECT_THROW(static_cast<void>(thrower.Join()), std::runtime_error);
  VirtualThread sleeper = runtime().Spawn([] { return SleepFor(hours(1)); });
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(sleeper.Join(), StatusIs(kDeadlineExceeded));
  }
  sleeper.Cancel();
  EXPECT_THAT(sleeper.Join(), StatusIs(kCancelled));
  const VirtualThread left = runtime().Spawn([] { return SleepFor(hours(1)); });
}

// A join meets the end at every instant.
BOBBIN_FOREIGN_TEST(VirtualThreadTest, JoinAndDetachRaceWithTheEnd) {
  for (int round = 0; round < Rounds(1000); ++round) {
    VirtualThread joined = runtime().Spawn({.placement = Placement::kSpread}, [] {});
    VirtualThread detached = runtime().Spawn({.placement = Placement::kSpread}, [] {});
    const VirtualThread dropped = runtime().Spawn({.placement = Placement::kSpread}, [] {});
    VirtualThread polled = runtime().Spawn({.placement = Placement::kSpread}, [] {});
    std::move(detached).Detach();
    ASSERT_OK(joined.Join());
    AwaitTrue([&] { return polled.IsDone(); });
    ASSERT_OK(polled.Join());
  }
}

BOBBIN_TEST(VirtualThreadTest, JoinRacesWithTheEndAndItsOwnDeadline) {
  for (int round = 0; round < Rounds(1000); ++round) {
    VirtualThread thread = Spawn({.placement = Placement::kSpread}, [yields = random().Below(4)] {
      for (uint64_t i = 0; i < yields; ++i) Yield();
    });
    absl::Status joined;
    {
      const DeadlineScope scope(std::chrono::microseconds(random().Below(20)));
      joined = thread.Join();
    }
    ASSERT_EQ(joined.ok(), !thread.is_joinable());
    if (!joined.ok()) {
      ASSERT_OK(thread.Join());
    }
  }
}

// All that a handle can do to a thread that runs, ends or has ended, by every kind of thread.
BOBBIN_FOREIGN_TEST(VirtualThreadTest, ThreadsOfAllKindsJoinCancelAndDetach) {
  for (int round = 0; round < Rounds(200); ++round) {
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kPlatform, Kind::kForeign}) {
      crew.Start(kind, [this, does_wait = random().OneIn(2)] {
        const auto start = [&](absl::Status with) {
          return runtime().Spawn({.placement = Placement::kSpread}, [with] {
            Yield();
            return with;
          });
        };
        VirtualThread joined = start(absl::DataLossError("gone"));
        VirtualThread polled = start(absl::DataLossError("gone"));
        VirtualThread detached = start(absl::OkStatus());
        const VirtualThread dropped = start(absl::DataLossError("gone"));
        VirtualThread parked = runtime().Spawn([] { return SleepFor(hours(1)); });
        if (does_wait) AwaitTrue([&] { return polled.IsDone(); });
        EXPECT_EQ(joined.Join(), absl::DataLossError("gone"));
        EXPECT_FALSE(joined.is_joinable());
        std::move(detached).Detach();
        parked.Cancel();
        EXPECT_THAT(parked.Join(), StatusIs(kCancelled));
        EXPECT_EQ(polled.Join(), absl::DataLossError("gone"));
      });
    }
  }
}

// The carrier on which it ran is gone; what it ended with is not.
TEST(VirtualThreadTest, AThreadThatHasEndedIsJoinedAfterItsRuntimeWasShutDown) {
  Runtime other({.carriers = 1});
  Runtime runtime({.carriers = 2});
  const auto start = [&] {
    return runtime.Spawn({.placement = Placement::kSpread}, [] { return SleepFor(hours(1)); });
  };
  VirtualThread by_foreign = start();
  VirtualThread by_virtual = start();
  VirtualThread by_platform = start();
  VirtualThread detached = start();
  const VirtualThread dropped = start();
  VirtualThread threw = runtime.Spawn([] { throw std::invalid_argument("kept"); });
  ASSERT_OK(runtime.Shutdown());

  EXPECT_TRUE(by_foreign.IsDone());
  by_foreign.Cancel();
  EXPECT_THAT(by_foreign.Join(), StatusIs(kCancelled));
  VirtualThread joiner = other.Spawn([&]() -> absl::Status {
    EXPECT_THAT(by_virtual.Join(), StatusIs(kCancelled));
    return RunBlocking([&] { EXPECT_THAT(by_platform.Join(), StatusIs(kCancelled)); });
  });
  EXPECT_OK(joiner.Join());
  std::move(detached).Detach();
  EXPECT_THROW(static_cast<void>(threw.Join()), std::invalid_argument);
}

// What is kept in a register about the carrier - errno's address, another thread-local's - stays
// true over a wait: a thread goes on where it was.
BOBBIN_TEST(VirtualThreadTest, AThreadStaysOnItsCarrier) {
  Semaphore turns(0);
  std::atomic<bool> is_over{false};
  OsThreads outside;
  outside.Start([&] {
    while (!is_over) turns.Release();
  });
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&] {
      const int* const own_errno = &errno;
      const pid_t own_carrier = static_cast<pid_t>(syscall(SYS_gettid));
      for (int round = 0; round < Rounds(500); ++round) {
        ASSERT_OK(turns.Acquire());
        if (round % 10 == 0) {
          ASSERT_OK(SleepFor(std::chrono::microseconds(10)));
        }
        ASSERT_EQ(&errno, own_errno);
        ASSERT_EQ(static_cast<pid_t>(syscall(SYS_gettid)), own_carrier);
      }
    });
  }
  ASSERT_OK(group.Wait());
  is_over = true;
}

// A carrier ends on its own stack; what it had in thread_locals is destroyed there.
struct Witness {
  ~Witness();
  bool is_in_use = false;
};
thread_local Witness witness;
std::atomic<int> witnesses_used{0};
std::atomic<int> witnesses_ended{0};
std::atomic<int> witnesses_on_strange_stacks{0};

bool IsOnNativeStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* bottom = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &bottom, &bytes);
  pthread_attr_destroy(&attributes);
  const char* const here = static_cast<const char*>(__builtin_frame_address(0));
  return here >= static_cast<char*>(bottom) && here < static_cast<char*>(bottom) + bytes;
}

Witness::~Witness() {
  if (!is_in_use) return;
  ++witnesses_ended;
  if (!IsOnNativeStack()) ++witnesses_on_strange_stacks;
}

TEST(VirtualThreadTest, ACarrierEndsOnItsNativeStack) {
  for (int round = 0; round < Rounds(200); ++round) {
    Runtime runtime({.carriers = round % 3 + 1});
    VirtualThread threads[4];
    for (VirtualThread& thread : threads) {
      thread = runtime.Spawn({.placement = Placement::kSpread}, [] {
        if (!witness.is_in_use) ++witnesses_used;
        witness.is_in_use = true;
        EXPECT_FALSE(IsOnNativeStack());
        Yield();
      });
    }
    for (VirtualThread& thread : threads) ASSERT_OK(thread.Join());
    ASSERT_OK(runtime.Shutdown());
  }
  EXPECT_GT(witnesses_used, 0);
  EXPECT_EQ(witnesses_ended, witnesses_used);
  EXPECT_EQ(witnesses_on_strange_stacks, 0);
}

// What cannot be meant aborts, and says so.
TEST(VirtualThreadDeathTest, JoiningItselfAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        VirtualThread self;
        Event go;
        self = runtime.Spawn([&]() -> absl::Status {
          BOBBIN_RETURN_IF_ERROR(go.Wait());
          return self.Join();
        });
        go.Set();
        static_cast<void>(runtime.AwaitIdle());
      },
      "a virtual thread cannot join itself");
}

TEST(VirtualThreadDeathTest, UsingAHandleThatHoldsNothingAborts) {
  VirtualThread none;
  EXPECT_DEATH(static_cast<void>(none.Join()), "Join of a handle that holds no virtual thread");
  EXPECT_DEATH(none.Cancel(), "Cancel of a handle that holds no virtual thread");
  EXPECT_DEATH(static_cast<void>(none.IsDone()), "IsDone of a handle that holds no virtual thread");
  EXPECT_DEATH(static_cast<void>(none.Id()), "Id of a handle that holds no virtual thread");
  EXPECT_DEATH(std::move(none).Detach(), "Detach of a handle that holds no virtual thread");
}

TEST(VirtualThreadDeathTest, JoiningTwiceAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        VirtualThread thread = runtime.Spawn([] {});
        static_cast<void>(thread.Join());
        static_cast<void>(thread.Join());
      },
      "Join of a handle that holds no virtual thread");
}

TEST(VirtualThreadDeathTest, AnExceptionOutOfADetachedThreadEndsTheProcessAndNamesIt) {
  constexpr char kMessage[] =
      "left the detached virtual thread \"stray\" \\(id [0-9]+\\), std::runtime_error: nobody "
      "hears this";
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        runtime.Spawn({.name = "stray"}, [] { throw std::runtime_error("nobody hears this"); })
            .Detach();
        static_cast<void>(runtime.AwaitIdle());
      },
      kMessage);
  // Detached when it has ended.
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        VirtualThread thread =
            runtime.Spawn({.name = "stray"}, [] { throw std::runtime_error("nobody hears this"); });
        AwaitTrue([&] { return thread.IsDone(); });
        std::move(thread).Detach();
      },
      kMessage);
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        runtime.Spawn({.name = "stray"}, [] { throw 7; }).Detach();
        static_cast<void>(runtime.AwaitIdle());
      },
      "\"stray\" \\(id [0-9]+\\), int");
}

TEST(VirtualThreadDeathTest, SpawningOnAForeignThreadWithoutARuntimeAborts) {
  EXPECT_DEATH(static_cast<void>(Spawn([] {})), "check failed");
}

}  // namespace
}  // namespace bobbin::test
