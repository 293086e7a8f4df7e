// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/event.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The way to a private function that the language leaves open: a thread that has looked once and
// found the event not set is about to call it.
template <absl::Status (Event::*kWaitSlow)()>
struct AfterFirstLook {
  friend absl::Status WaitAfterFirstLook(Event& event) { return (event.*kWaitSlow)(); }
};
absl::Status WaitAfterFirstLook(Event& event);
template struct AfterFirstLook<&Event::WaitSlow>;

// What a race would have to hit, step by step.
BOBBIN_TEST(EventTest, ASetBetweenTheFirstLookAndTheQueueIsSeen) {
  Event event;
  event.Set();
  const DeadlineScope scope(std::chrono::seconds(10));
  EXPECT_OK(WaitAfterFirstLook(event));
  EXPECT_OK(CheckStop());  // It was not the deadline that ended the wait.
}

BOBBIN_TEST(EventTest, SetUnparksEveryWaiter) {
  Event event;
  std::atomic<int> awake{0};
  ThreadProbe probes[5];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&]() -> absl::Status {
      probe.Attach();
      BOBBIN_RETURN_IF_ERROR(event.Wait());
      ++awake;
      return absl::OkStatus();
    });
    probe.AwaitParked();
  }
  EXPECT_FALSE(event.IsSet());
  EXPECT_EQ(awake, 0);
  event.Set();
  EXPECT_TRUE(event.IsSet());
  ASSERT_OK(group.Wait());
  EXPECT_EQ(awake, 5);
}

BOBBIN_TEST(EventTest, OnceSetItStaysSetAndNobodyWaits) {
  Event event;
  event.Set();
  event.Set();
  const NoSuspendScope scope;
  EXPECT_TRUE(event.IsSet());
  EXPECT_OK(event.Wait());
  EXPECT_OK(event.WaitUntil(Deadline::After(milliseconds(-1))));
}

BOBBIN_TEST(EventTest, WhatTheSetterDidIsSeenByTheWaiter) {
  const int rounds = Rounds(2000);
  for (int round = 0; round < rounds; ++round) {
    Event event;
    int data = 0;
    VirtualThread setter = Spawn({.placement = Placement::kSpread}, [&] {
      data = round + 1;
      event.Set();
    });
    ASSERT_OK(event.Wait());
    ASSERT_EQ(data, round + 1);
    ASSERT_OK(setter.Join());
  }
}

BOBBIN_TEST(EventTest, DeadlineEndsTheWaitAndTheEventGoesOn) {
  Event event;
  EXPECT_THAT(event.WaitUntil(Deadline::After(milliseconds(1))), StatusIs(kDeadlineExceeded));
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(event.Wait(), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(event.Wait(), StatusIs(kDeadlineExceeded));
    event.Set();
    EXPECT_OK(event.Wait());
  }
}

BOBBIN_TEST(EventTest, CancelEndsOneWaitAndTheOthersGoOn) {
  Event event;
  ThreadProbe probes[2];
  VirtualThread first = Spawn([&] {
    probes[0].Attach();
    return event.Wait();
  });
  VirtualThread second = Spawn([&] {
    probes[1].Attach();
    return event.Wait();
  });
  for (const ThreadProbe& probe : probes) probe.AwaitParked();
  first.Cancel();
  EXPECT_THAT(first.Join(), StatusIs(kCancelled));
  EXPECT_TRUE(probes[1].IsParked());
  event.Set();
  ASSERT_OK(second.Join());
}

BOBBIN_TEST(EventTest, AThreadThatIsToStopSeesASetEventButDoesNotWaitForOne) {
  Event is_set;
  Event is_not_set;
  is_set.Set();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(is_set.Wait());
    EXPECT_THAT(is_not_set.Wait(), StatusIs(kCancelled));
    EXPECT_THAT(is_not_set.WaitUntil(Deadline::Never()), StatusIs(kCancelled));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
}

// Whatever the order of set, deadline and first look, each wait ends once.
BOBBIN_TEST(EventTest, DeadlineAndSetRaceEndsEachWaitOnce) {
  const int rounds = Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    Event event;
    std::atomic<int> ended{0};
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 3; ++i) {
      group.Spawn([&, microseconds_left = random().Between(0, 150)] {
        const absl::Status status =
            event.WaitUntil(Deadline::After(microseconds(microseconds_left)));
        EXPECT_THAT(status.code(), testing::AnyOf(kOk, kDeadlineExceeded));
        ++ended;
      });
    }
    if (round % 2 == 0) {
      ASSERT_OK(SleepFor(microseconds(random().Between(10, 150))));
    }
    event.Set();
    ASSERT_OK(group.Wait());
    ASSERT_EQ(ended, 3);
    ASSERT_TRUE(event.IsSet());
  }
}

// Between a waiter's first look and its place in the queue there is no gap to fall into.
BOBBIN_FOREIGN_TEST(EventTest, NoSetIsMissedByAThreadThatBeginsToWait) {
  const int rounds = Rounds(3000);
  std::atomic<Event*> current{nullptr};
  VirtualThread setter = runtime().Spawn([&, own = random().Fork()]() mutable {
    for (int round = 0; round < rounds; ++round) {
      Event* event = nullptr;
      AwaitTrue([&] { return (event = current.exchange(nullptr)) != nullptr; });
      Spin(own.Below(300));
      event->Set();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    Event event;
    current = &event;
    Spin(random().Below(300));
    const DeadlineScope scope(std::chrono::seconds(10));
    ASSERT_OK(event.Wait());
    ASSERT_OK(CheckStop());
  }
  ASSERT_OK(setter.Join());
}

// Set does not touch what it has let somebody destroy, be it through Wait or through
// IsSet.
BOBBIN_FOREIGN_TEST(EventTest, WhoSeesItSetMayDestroyIt) {
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    auto* const event = new Event;
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [event] { event->Set(); });
    crew.Start(Kind::kVirtual, [event, round] {
      if (round % 2 == 0) {
        EXPECT_OK(event->Wait());
      } else {
        AwaitTrue([event] { return event->IsSet(); });
      }
      delete event;
    });
  }
}

// A set from outside reaches a runtime that sleeps, and the other way round.
BOBBIN_FOREIGN_TEST(EventTest, VirtualAndForeignThreadsUnparkEachOther) {
  const int rounds = Rounds(600);
  for (int round = 0; round < rounds; ++round) {
    Event there;
    Event back;
    ThreadProbe probe;
    VirtualThread other = runtime().Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      probe.Attach();
      BOBBIN_RETURN_IF_ERROR(there.Wait());
      back.Set();
      return absl::OkStatus();
    });
    if (round % 16 == 0) probe.AwaitParked();
    there.Set();
    ASSERT_OK(back.WaitUntil(Deadline::After(std::chrono::seconds(30))));
    ASSERT_OK(other.Join());
  }
}

TEST(EventDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        auto event = std::make_unique<Event>();
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          probe.Attach();
          return event->Wait();
        });
        probe.AwaitParked();
        event.reset();
      },
      "an event is destroyed while threads wait for it");
}

TEST(EventDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Event event;
        const NoSuspendScope scope;
        static_cast<void>(event.Wait());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
