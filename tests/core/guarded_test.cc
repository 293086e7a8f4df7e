// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/guarded.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kNotEmpty = [](const auto& values) { return !values.empty(); };
constexpr auto kIsSet = [](int value) { return value != 0; };

int ValueOf(const Guarded<int>& number) {
  return number.With([](int value) { return value; });
}

BOBBIN_TEST(GuardedTest, OneThreadHasTheValueAtATime) {
  Guarded<std::vector<int>> values;
  const int rounds = Rounds(500);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, i] {
      for (int round = 0; round < rounds; ++round) {
        if (round % 2 == 0) {
          values.Lock()->push_back(i);
        } else {
          auto held = values.Lock();
          held->push_back(i);
          Yield();
          EXPECT_EQ(held->back(), i);
        }
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(values.Lock()->size(), static_cast<size_t>(8 * rounds));
}

BOBBIN_TEST(GuardedTest, ItIsMadeFromWhatItsValueIsMadeFrom) {
  const Guarded<std::string> text(size_t{3}, 'x');
  EXPECT_EQ(text.With([](const std::string& value) { return value; }), "xxx");
  EXPECT_EQ((*text.LockUntil(Deadline::Never()))->size(), 3u);
  Guarded<std::unique_ptr<int>> pointer(std::make_unique<int>(7));
  EXPECT_EQ(pointer.With([](const auto& value) { return *value; }), 7);
  const Guarded<int> zero;
  EXPECT_EQ(ValueOf(zero), 0);
}

BOBBIN_TEST(GuardedTest, WithReturnsWhatTheFunctionReturns) {
  Guarded<int> number(1);
  number.With([](int& value) { ++value; });
  EXPECT_EQ(number.With([](int& value) { return value *= 10; }), 20);
}

BOBBIN_TEST(GuardedTest, TheLockMovesAndEndsOnce) {
  Guarded<int> first(1);
  Guarded<int> second(2);
  auto held = first.Lock();
  Held<int> moved(std::move(held));
  EXPECT_EQ(*moved, 1);
  EXPECT_THAT(
      Spawn([&] { return first.LockUntil(Deadline::After(milliseconds(1))).status(); }).Join(),
      StatusIs(kDeadlineExceeded));
  // What it held before is free again.
  moved = second.Lock();
  EXPECT_EQ(*moved, 2);
  EXPECT_EQ(ValueOf(first), 1);
  moved.Unlock();
  moved.Unlock();
  EXPECT_EQ(ValueOf(second), 2);
}

BOBBIN_TEST(GuardedTest, DeadlineAndCancelEndTheWaitForTheLock) {
  Guarded<int> number;
  ThreadProbe probe;
  auto held = number.Lock();
  VirtualThread other = Spawn([&]() -> absl::Status {
    EXPECT_THAT(number.LockUntil(Deadline::After(milliseconds(-1))), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(std::as_const(number).LockUntil(Deadline::After(milliseconds(1))),
                StatusIs(kDeadlineExceeded));
    probe.Attach();
    return number.LockUntil(Deadline::Never()).status();
  });
  AwaitTrue([&] { return probe.IsParked(); });
  other.Cancel();
  EXPECT_THAT(other.Join(), StatusIs(kCancelled));
}

BOBBIN_TEST(GuardedTest, AwaitReturnsAtOnceWhenThePredicateIsTrue) {
  Guarded<int> number(1);
  auto held = number.Lock();
  EXPECT_OK(held.Await(kIsSet));
  EXPECT_OK(held.AwaitUntil(Deadline::After(milliseconds(-1)), kIsSet));
}

BOBBIN_TEST(GuardedTest, AwaitGivesTheLockUpAndHoldsItWhenThePredicateIsTrue) {
  Guarded<std::deque<int>> queue;
  ThreadProbe probe;
  VirtualThread taker = Spawn({.placement = Placement::kSpread}, [&] {
    auto held = queue.Lock();
    probe.Attach();
    EXPECT_OK(held.Await(kNotEmpty));
    EXPECT_EQ(held->front(), 7);
    held->pop_front();
  });
  probe.AwaitParked();
  queue.Lock()->push_back(7);
  ASSERT_OK(taker.Join());
  EXPECT_TRUE(queue.Lock()->empty());
}

// Nobody is woken in vain: as long as the predicate says no, the thread stays parked.
BOBBIN_TEST(GuardedTest, AChangeThatSatisfiesNobodyWakesNobody) {
  Guarded<int> number;
  std::atomic<int> looks{0};
  ThreadProbe probe;
  const void* changer = &internal::Current();
  std::atomic<int> own_looks{0};
  VirtualThread waiter = Spawn({.placement = Placement::kSpread}, [&] {
    auto held = number.Lock();
    probe.Attach();
    return held.Await([&](int value) {
      ++(&internal::Current() == changer ? looks : own_looks);
      return value == 100;
    });
  });
  probe.AwaitParked();
  for (int i = 0; i < 99; ++i) number.With([](int& value) { ++value; });
  EXPECT_TRUE(probe.IsParked());
  EXPECT_EQ(looks, 99);
  EXPECT_EQ(own_looks, 1);
  // Who cannot have changed it does not ask.
  EXPECT_EQ(ValueOf(number), 99);
  EXPECT_EQ(looks, 99);
  number.With([](int& value) { ++value; });
  ASSERT_OK(waiter.Join());
  EXPECT_EQ(looks, 100);
}

BOBBIN_TEST(GuardedTest, OfThoseSatisfiedTheLongestWaiterGoesFirst) {
  Guarded<int> number;
  Log<int> order;
  ThreadProbe probes[4];
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      auto held = number.Lock();
      probes[i].Attach();
      // The second one wants more than there is.
      BOBBIN_RETURN_IF_ERROR(held.Await([i](int value) { return value > (i == 1 ? 1 : 0); }));
      order.Add(i);
      return absl::OkStatus();
    });
    probes[i].AwaitParked();
  }
  number.With([](int& value) { value = 1; });
  AwaitTrue([&] { return order.size() == 3; });
  EXPECT_TRUE(probes[1].IsParked());
  number.With([](int& value) { value = 2; });
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre(0, 2, 3, 1));
}

// One is woken at a time; it passes the question on, also when it only reads, gives up, or finds
// that somebody was faster.
BOBBIN_TEST(GuardedTest, ReadersThatAreWokenWakeTheNext) {
  Guarded<int> number;
  ThreadProbe probes[5];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&]() -> absl::Status {
      auto held = std::as_const(number).Lock();
      probe.Attach();
      return held.Await(kIsSet);
    });
    probe.AwaitParked();
  }
  number.With([](int& value) { value = 1; });
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(GuardedTest, WhatAThreadHasChangedBeforeItAwaitsIsSeenByOthers) {
  Guarded<int> number;
  ThreadProbe probe;
  VirtualThread other = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
    auto held = number.Lock();
    probe.Attach();
    BOBBIN_RETURN_IF_ERROR(held.Await([](int value) { return value == 1; }));
    *held = 2;
    return absl::OkStatus();
  });
  probe.AwaitParked();
  auto held = number.Lock();
  *held = 1;
  ASSERT_OK(held.Await([](int value) { return value == 2; }));
  held.Unlock();
  ASSERT_OK(other.Join());
}

BOBBIN_TEST(GuardedTest, CancelAndDeadlineEndAnAwaitWithTheLockHeld) {
  Guarded<int> number;
  ThreadProbe probe;
  VirtualThread waiter = Spawn({.placement = Placement::kSpread}, [&] {
    auto held = number.Lock();
    probe.Attach();
    absl::Status status = held.Await(kIsSet);
    EXPECT_EQ(*held, 0);
    *held = 5;
    return status;
  });
  probe.AwaitParked();
  waiter.Cancel();
  EXPECT_THAT(waiter.Join(), StatusIs(kCancelled));
  EXPECT_EQ(ValueOf(number), 5);
  auto held = number.Lock();
  const auto is_six = [](int value) { return value == 6; };
  EXPECT_THAT(held.AwaitUntil(Deadline::After(milliseconds(1)), is_six),
              StatusIs(kDeadlineExceeded));
  EXPECT_EQ(*held, 5);
  const DeadlineScope scope(milliseconds(1));
  EXPECT_THAT(held.Await(is_six), StatusIs(kDeadlineExceeded));
  EXPECT_THAT(held.Await(is_six), StatusIs(kDeadlineExceeded));
}

// The wait is over, and the thread has not run yet: what it finds then counts.
BOBBIN_TEST(GuardedTest, WhoFindsItsPredicateTrueAfterACancelIsToldSo) {
  Guarded<int> number;
  ThreadProbe probe;
  VirtualThread waiter = Spawn([&] {
    auto held = number.Lock();
    probe.Attach();
    return held.Await(kIsSet);
  });
  probe.AwaitParked();
  waiter.Cancel();
  number.With([](int& value) { value = 1; });
  const absl::Status awaited = waiter.Join();
  // On other carriers it may have run before.
  if (carriers() == 1 || awaited.ok()) {
    EXPECT_OK(awaited);
  } else {
    EXPECT_THAT(awaited, StatusIs(kCancelled));
  }
}

BOBBIN_TEST(GuardedTest, AThreadThatIsToStopDoesNotGiveTheLockUp) {
  Guarded<int> number;
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    auto held = number.Lock();
    *held = 1;
    EXPECT_THAT(held.Await([](int value) { return value == 2; }), StatusIs(kCancelled));
    EXPECT_EQ(*held, 1);
    EXPECT_OK(held.Await(kIsSet));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
}

// Each item is taken once, and nobody waits beside an item.
BOBBIN_TEST(GuardedTest, ManyTakersAndMakersLoseNothing) {
  constexpr int kTakers = 6;
  Guarded<std::deque<int>> queue;
  std::atomic<int64_t> taken{0};
  const int items = Rounds(3000);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < kTakers; ++i) {
    group.Spawn([&, own = random().Fork()]() mutable -> absl::Status {
      while (true) {
        auto held = queue.Lock();
        if (own.OneIn(3)) {
          // Gives up at any instant, and tries again.
          if (!held.AwaitUntil(Deadline::After(microseconds(own.Between(0, 100))), kNotEmpty)
                   .ok()) {
            continue;
          }
        } else {
          BOBBIN_RETURN_IF_ERROR(held.Await(kNotEmpty));
        }
        const int item = held->front();
        if (item < 0) return absl::OkStatus();
        held->pop_front();
        if (own.OneIn(8)) Yield();
        taken += item;
      }
    });
  }
  for (int i = 1; i <= items; ++i) {
    queue.Lock()->push_back(i);
    if (random().OneIn(4)) Yield();
  }
  {
    // All are taken: the predicate of the one who makes is another one.
    auto held = queue.Lock();
    ASSERT_OK(held.Await([](const auto& rest) { return rest.empty(); }));
    held->push_back(-1);
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(taken, int64_t{items} * (items + 1) / 2);
}

// A cancel that meets the change: the thread that is told of the cancel leaves the change to the
// next.
BOBBIN_TEST(GuardedTest, CancelAndChangeRaceLeavesTheChangeToTheNext) {
  for (int round = 0; round < Rounds(1000); ++round) {
    Guarded<int> tokens;
    ThreadProbe probes[2];
    VirtualThread threads[2];
    for (int i = 0; i < 2; ++i) {
      threads[i] = Spawn({.placement = Placement::kSpread}, [&, i]() -> absl::Status {
        auto held = tokens.Lock();
        probes[i].Attach();
        BOBBIN_RETURN_IF_ERROR(held.Await(kIsSet));
        --*held;
        return absl::OkStatus();
      });
      probes[i].AwaitParked();
    }
    VirtualThread maker =
        Spawn({.placement = Placement::kSpread}, [&] { tokens.With([](int& value) { ++value; }); });
    Spin(random().Below(200));
    threads[0].Cancel();
    ASSERT_OK(maker.Join());
    const absl::Status first = threads[0].Join();
    if (first.ok()) tokens.With([](int& value) { ++value; });
    ASSERT_OK(threads[1].Join());
    EXPECT_EQ(ValueOf(tokens), 0);
  }
}

// An unlock does not touch what the next holder may destroy.
BOBBIN_FOREIGN_TEST(GuardedTest, ItsLastHolderMayDestroyIt) {
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto* const users = new Guarded<int>(4);
    const auto use = [users] {
      const bool is_last = users->With([](int& value) { return --value == 0; });
      if (is_last) delete users;
    };
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) crew.Start(Kind::kVirtual, use);
    use();
  }
}

// The one that awaits the end of the others may destroy it.
BOBBIN_FOREIGN_TEST(GuardedTest, WhoAwaitsTheOthersMayDestroyIt) {
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto* const users = new Guarded<int>(3);
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) {
      crew.Start(Kind::kVirtual, [users] { users->With([](int& value) { --value; }); });
    }
    {
      auto held = users->Lock();
      EXPECT_OK(held.Await([](int value) { return value == 0; }));
    }
    delete users;
  }
}

BOBBIN_FOREIGN_TEST(GuardedTest, ThreadsOfAllKindsMeet) {
  Guarded<int> turn;
  const int rounds = Rounds(1000);
  Crew crew(runtime());
  const Kind kinds[] = {Kind::kVirtual, Kind::kForeign, Kind::kPlatform};
  for (int i = 0; i < 3; ++i) {
    crew.Start(kinds[i], [&, i] {
      for (int round = 0; round < rounds; ++round) {
        auto held = turn.Lock();
        EXPECT_OK(held.Await([i](int value) { return value % 3 == i; }));
        ++*held;
      }
    });
  }
  crew.Join();
  EXPECT_EQ(ValueOf(turn), 3 * rounds);
}

BOBBIN_FOREIGN_TEST(GuardedTest, AForeignThreadWaitsNoLongerThanItsDeadline) {
  Guarded<int> number;
  auto held = number.Lock();
  EXPECT_THAT(held.AwaitUntil(Deadline::After(milliseconds(2)), kIsSet),
              StatusIs(kDeadlineExceeded));
  const DeadlineScope scope(milliseconds(2));
  EXPECT_THAT(held.Await(kIsSet), StatusIs(kDeadlineExceeded));
}

TEST(GuardedDeathTest, UsingALockThatWasGivenUpAborts) {
  Guarded<int> number;
  auto held = number.Lock();
  held.Unlock();
  EXPECT_DEATH(*held = 1, "a guarded value is used after its lock was given up");
  EXPECT_DEATH(static_cast<void>(held.Await(kIsSet)),
               "a guarded value is used after its lock was given up");
}

TEST(GuardedDeathTest, LockingItTwiceAborts) {
  Guarded<int> number;
  auto held = number.Lock();
  EXPECT_DEATH(static_cast<void>(number.Lock()), "a thread locks a mutex that it holds");
}

TEST(GuardedDeathTest, APredicateThatWaitsAborts) {
  Guarded<int> number;
  auto held = number.Lock();
  EXPECT_DEATH(static_cast<void>(held.Await([](int) {
                 static_cast<void>(SleepFor(hours(1)));
                 return true;
               })),
               "a wait inside a NoSuspendScope");
}

TEST(GuardedDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        auto number = std::make_unique<Guarded<int>>();
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          auto held = number->Lock();
          probe.Attach();
          return held.Await(kIsSet);
        });
        probe.AwaitParked();
        static_cast<void>(ValueOf(*number));  // The waiter has given the lock up.
        number.reset();
      },
      "a guarded value is destroyed while threads wait for it");
}

TEST(GuardedDeathTest, DestroyingItWhileItIsHeldAborts) {
  EXPECT_DEATH(
      {
        auto number = std::make_unique<Guarded<int>>();
        auto held = number->Lock();
        number.reset();
      },
      "a mutex is destroyed while it is held");
}

}  // namespace
}  // namespace bobbin::test
