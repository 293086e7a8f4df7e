// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
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

// Counts how many there are.
class Counted {
 public:
  explicit Counted(std::atomic<int>& live) : live_(&live) { ++*live_; }
  Counted(Counted&& other) noexcept : live_(other.live_) { ++*live_; }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --*live_; }

 private:
  std::atomic<int>* live_;
};

BOBBIN_TEST(FutureTest, WhatIsSetIsGot) {
  auto [promise, future] = MakePromise<std::string>();
  EXPECT_FALSE(future.IsReady());
  promise.Set("result");
  EXPECT_TRUE(future.IsReady());
  EXPECT_THAT(future.Get(), IsOkAndHolds("result"));
  EXPECT_FALSE(future);
}

BOBBIN_TEST(FutureTest, ItCarriesNothingMoveOnlyValuesAndReferences) {
  auto [done, is_done] = MakePromise<void>();
  done.Set();
  EXPECT_OK(is_done.Get());

  auto [owner, owned] = MakePromise<std::unique_ptr<int>>();
  owner.Set(std::make_unique<int>(7));
  absl::StatusOr<std::unique_ptr<int>> got = owned.Get();
  ASSERT_OK(got);
  EXPECT_EQ(**got, 7);

  int here = 1;
  auto [pointer, pointed] = MakePromise<std::reference_wrapper<int>>();
  pointer.Set(std::ref(here));
  absl::StatusOr<std::reference_wrapper<int>> there = pointed.Get();
  ASSERT_OK(there);
  EXPECT_EQ(&there->get(), &here);
}

BOBBIN_TEST(FutureTest, ItCarriesAStatusAndAnException) {
  auto [failing, failed] = MakePromise<int>();
  failing.Set(absl::DataLossError("torn page"));
  EXPECT_EQ(failed.Get().status().message(), "torn page");

  auto [throwing, thrown] = MakePromise<int>();
  throwing.SetException(std::make_exception_ptr(std::runtime_error("thrown")));
  ASSERT_OK(thrown.Wait());
  EXPECT_THROW(static_cast<void>(thrown.Get()), std::runtime_error);
  EXPECT_FALSE(thrown);
}

BOBBIN_TEST(FutureTest, GetWaitsForTheSet) {
  auto [promise, future] = MakePromise<int>();
  ThreadProbe probe;
  std::atomic<bool> is_set{false};
  VirtualThread reader = Spawn([&, future = std::move(future)]() mutable {
    probe.Attach();
    EXPECT_THAT(future.Get(), IsOkAndHolds(3));
    EXPECT_TRUE(is_set);
  });
  probe.AwaitParked();
  is_set = true;
  promise.Set(3);
  ASSERT_OK(reader.Join());
}

// A promise that goes without a result ends every wait for one.
BOBBIN_FOREIGN_TEST(FutureTest, APromiseThatGoesWithoutAResultBreaksItsFuture) {
  for (const Kind kind : {Kind::kVirtual, Kind::kForeign}) {
    auto ends = MakePromise<int>();
    ThreadProbe probe;
    Crew crew(runtime());
    crew.Start(kind, [&] {
      probe.Attach();
      EXPECT_THAT(ends.future.Get(), StatusIs(absl::StatusCode::kAborted));
    });
    probe.AwaitParked();
    { const Promise<int> dropped = std::move(ends.promise); }
    crew.Join();
  }
  auto [promise, future] = MakePromise<void>();
  promise = Promise<void>();
  EXPECT_TRUE(future.IsReady());
  EXPECT_THAT(future.Get(), StatusIs(absl::StatusCode::kAborted));
}

BOBBIN_TEST(FutureTest, OfTwoSetsTheFirstWinsAndTheSecondIsTold) {
  auto [promise, future] = MakePromise<int>();
  EXPECT_TRUE(promise.TrySet(1));
  EXPECT_FALSE(promise.TrySet(2));
  EXPECT_FALSE(promise.TrySet(absl::InternalError("late")));
  EXPECT_THAT(future.Get(), IsOkAndHolds(1));
  EXPECT_FALSE(promise.TrySet(3));
}

TEST(FutureDeathTest, SettingItTwiceAborts) {
  EXPECT_DEATH(
      {
        auto ends = MakePromise<int>();
        ends.promise.Set(1);
        ends.promise.Set(2);
      },
      "a promise is set that has been set before");
  EXPECT_DEATH(
      {
        auto ends = MakePromise<void>();
        ends.promise.Set();
        ends.promise.SetException(std::make_exception_ptr(1));
      },
      "a promise is set that has been set before");
}

TEST(FutureDeathTest, UsingWhatHoldsNothingAborts) {
  EXPECT_DEATH(
      {
        auto ends = MakePromise<int>();
        ends.promise.Set(1);
        static_cast<void>(ends.future.Get());
        static_cast<void>(ends.future.Get());
      },
      "a future is used that holds nothing");
  EXPECT_DEATH(Promise<int>().Set(1), "a promise is used that holds nothing");
  EXPECT_DEATH(
      {
        std::vector<Future<int>> nothing(2);
        static_cast<void>(WaitAny(nothing));
      },
      "none of which holds anything");
}

TEST(FutureDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        auto ends = MakePromise<int>();
        const NoSuspendScope scope;
        static_cast<void>(ends.future.Get());
      },
      "a wait inside a NoSuspendScope");
  EXPECT_DEATH(
      {
        auto ends = MakePromise<void>();
        auto later = MakePromise<void>();
        Future<void> chained = std::move(ends.future).Then([&later](const absl::Status&) {
          static_cast<void>(later.future.Get());
        });
        ends.promise.Set();
      },
      "a wait inside a NoSuspendScope");
}

BOBBIN_TEST(FutureTest, ADeadlineEndsTheWaitAndTheFutureGoesOn) {
  auto [promise, future] = MakePromise<int>();
  EXPECT_THAT(future.GetUntil(Deadline::After(milliseconds(1))), StatusIs(kDeadlineExceeded));
  EXPECT_TRUE(future);
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(future.Get(), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(future.Wait(), StatusIs(kDeadlineExceeded));
    promise.Set(5);
    EXPECT_OK(future.Wait());
  }
  EXPECT_THAT(future.WaitUntil(Deadline::After(milliseconds(-1))), IsOk());
  EXPECT_THAT(future.Get(), IsOkAndHolds(5));
}

BOBBIN_TEST(FutureTest, ACancelEndsTheWaitAndTheFutureGoesOn) {
  auto [promise, future] = MakePromise<int>();
  ThreadProbe probe;
  VirtualThread reader = Spawn([&, &future = future] {
    probe.Attach();
    return future.Get().status();
  });
  probe.AwaitParked();
  reader.Cancel();
  EXPECT_THAT(reader.Join(), StatusIs(kCancelled));
  promise.Set(5);
  EXPECT_THAT(future.Get(), IsOkAndHolds(5));
}

// The one that sets it is new and goes first; the request to stop is not overlooked.
BOBBIN_TEST(FutureTest, WhoIsCancelledByTheOneThatGoesFirstDoesNotWait) {
  Event is_known;
  VirtualThread reader;
  reader = Spawn([&] {
    EXPECT_OK(is_known.Wait());
    auto [promise, future] = MakePromise<int>();
    TaskGroup group;
    group.Spawn([&] { reader.Cancel(); });
    EXPECT_THAT(future.Get().status(), StatusIs(kCancelled));
    const CancelShield shield;
    EXPECT_OK(group.Wait());
  });
  is_known.Set();
  AwaitTrue([&] { return reader.IsDone(); });
  EXPECT_OK(reader.Join());
}

BOBBIN_TEST(FutureTest, AThreadThatIsToStopGetsWhatIsThereButDoesNotWait) {
  auto [promise, future] = MakePromise<int>();
  auto [later, never] = MakePromise<int>();
  promise.Set(1);
  VirtualThread stopping = Spawn([&future = future, &never = never] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_THAT(never.Get(), StatusIs(kCancelled));
    EXPECT_THAT(WaitAny(never), StatusIs(kCancelled));
    EXPECT_THAT(WaitAny(never, future), IsOkAndHolds(1u));
    EXPECT_THAT(future.Get(), IsOkAndHolds(1));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
}

BOBBIN_TEST(FutureTest, AFutureThatGoesTellsItsPromise) {
  auto ends = MakePromise<int>();
  ThreadProbe probe;
  VirtualThread producer = Spawn([&] {
    probe.Attach();
    return ends.promise.abandoned().Wait();
  });
  probe.AwaitParked();
  EXPECT_FALSE(ends.promise.abandoned().IsSet());
  ends.future = Future<int>();
  ASSERT_OK(producer.Join());
  ends.promise.Set(1);  // Nobody gets it; nothing is wrong.
}

BOBBIN_TEST(FutureTest, AFutureThatGoesWithItsResultTellsNobody) {
  auto ends = MakePromise<int>();
  ends.promise.Set(1);
  ends.future = Future<int>();
  EXPECT_FALSE(ends.promise.abandoned().IsSet());
}

BOBBIN_TEST(FutureTest, NoResultIsLeaked) {
  std::atomic<int> live{0};
  {
    auto ends = MakePromise<Counted>();
    ends.promise.Set(Counted(live));
    EXPECT_EQ(live, 1);
    ends.future = Future<Counted>();
  }
  EXPECT_EQ(live, 0);
  {
    auto ends = MakePromise<Counted>();
    ends.promise.Set(Counted(live));
    ends.promise = Promise<Counted>();
  }
  EXPECT_EQ(live, 0);
  {
    auto ends = MakePromise<Counted>();
    ends.future = Future<Counted>();
    ends.promise.Set(Counted(live));
  }
  EXPECT_EQ(live, 0);
}

// --- Continuations.

BOBBIN_TEST(FutureThenTest, ItRunsOnTheThreadThatSetsTheResult) {
  auto [promise, future] = MakePromise<int>();
  std::atomic<uint64_t> runner{0};
  Future<std::string> text = std::move(future).Then([&](int value) {
    runner = this_vthread::Id();
    return std::to_string(value);
  });
  EXPECT_FALSE(future);
  uint64_t setter = 0;
  VirtualThread producer = Spawn([&, &promise = promise] {
    setter = this_vthread::Id();
    promise.Set(12);
  });
  EXPECT_THAT(text.Get(), IsOkAndHolds("12"));
  ASSERT_OK(producer.Join());
  EXPECT_EQ(runner, setter);
}

BOBBIN_TEST(FutureThenTest, WithAResultThatIsThereItRunsAtOnce) {
  auto [promise, future] = MakePromise<int>();
  promise.Set(1);
  bool has_run = false;
  Future<void> done = std::move(future).Then([&](int) { has_run = true; });
  EXPECT_TRUE(has_run);
  EXPECT_OK(done.Get());
}

BOBBIN_TEST(FutureThenTest, AnErrorPassesAFunctionOfAValueBy) {
  auto [promise, future] = MakePromise<int>();
  Future<int> chained = std::move(future)
                            .Then([](int value) {
                              ADD_FAILURE() << "there is no value";
                              return value;
                            })
                            .Then([](int value) -> absl::StatusOr<int> { return value + 1; });
  promise.Set(absl::DataLossError("torn"));
  EXPECT_EQ(chained.Get().status().message(), "torn");
}

BOBBIN_TEST(FutureThenTest, AFunctionOfAResultSeesErrorsToo) {
  auto [promise, future] = MakePromise<int>();
  Future<int> mended =
      std::move(future).Then([](const absl::StatusOr<int>& result) { return result.value_or(7); });
  promise.Set(absl::DataLossError("torn"));
  EXPECT_THAT(mended.Get(), IsOkAndHolds(7));

  auto [plain, plain_future] = MakePromise<void>();
  Future<int> code = std::move(plain_future).Then([](const absl::Status& status) {
    return static_cast<int>(status.code());
  });
  { const Promise<void> dropped = std::move(plain); }
  EXPECT_THAT(code.Get(), IsOkAndHolds(static_cast<int>(absl::StatusCode::kAborted)));
}

BOBBIN_TEST(FutureThenTest, AnExceptionPassesByAndIsRethrownAtTheEnd) {
  auto [promise, future] = MakePromise<void>();
  Future<int> chained = std::move(future)
                            .Then([]() -> int { throw std::runtime_error("thrown"); })
                            .Then([](const absl::StatusOr<int>&) {
                              ADD_FAILURE() << "an exception is no result";
                              return 0;
                            });
  promise.Set();
  EXPECT_THROW(static_cast<void>(chained.Get()), std::runtime_error);
}

// More than a stack has room for. A simulation runs them hundreds of times, for the orders, which
// fewer links show.
constexpr int kLinks = kIsSimulated ? 200 : 20'000;

BOBBIN_TEST(FutureThenTest, ALongChainNeedsNoStack) {
  auto ends = MakePromise<int>();
  Future<int> last = std::move(ends.future);
  for (int i = 0; i < kLinks; ++i) last = std::move(last).Then([](int value) { return value + 1; });
  ends.promise.Set(0);
  EXPECT_THAT(last.Get(), IsOkAndHolds(kLinks));
}

BOBBIN_TEST(FutureThenTest, DroppingTheEndOfALongChainTellsThePromiseAtItsBeginning) {
  auto ends = MakePromise<int>();
  Future<int> last = std::move(ends.future);
  std::atomic<int> runs{0};
  for (int i = 0; i < kLinks; ++i) {
    last = std::move(last).Then([&](int value) {
      ++runs;
      return value;
    });
  }
  EXPECT_FALSE(ends.promise.abandoned().IsSet());
  last = Future<int>();
  EXPECT_TRUE(ends.promise.abandoned().IsSet());
  ends.promise.Set(1);
  EXPECT_EQ(runs, kLinks);
}

BOBBIN_TEST(FutureThenTest, WhatTheFunctionHoldsEndsWithItsRun) {
  std::atomic<int> live{0};
  auto [promise, future] = MakePromise<void>();
  Future<void> chained = std::move(future).Then([held = Counted(live)] {});
  EXPECT_EQ(live, 1);
  promise.Set();
  EXPECT_EQ(live, 0);
  EXPECT_OK(chained.Get());
}

BOBBIN_FOREIGN_TEST(FutureThenTest, AttachingRacesWithSettingAndDropping) {
  const int rounds = Rounds(4000);
  std::atomic<int> runs{0};
  for (int round = 0; round < rounds; ++round) {
    auto ends = MakePromise<int>();
    Crew crew(runtime());
    crew.Start(Kind::kVirtual,
               [promise = std::move(ends.promise), turns = random().Below(200)]() mutable {
                 Spin(turns);
                 promise.Set(1);
               });
    const bool drops = random().OneIn(2);
    crew.Start(Kind::kVirtual,
               [&, future = std::move(ends.future), turns = random().Below(200), drops]() mutable {
                 Spin(turns);
                 Future<int> chained = std::move(future).Then([&](int value) {
                   ++runs;
                   return value + 1;
                 });
                 if (!drops) {
                   EXPECT_THAT(chained.Get(), IsOkAndHolds(2));
                 }
               });
  }
  EXPECT_EQ(runs, rounds);
}

// --- Several.

BOBBIN_TEST(FutureWaitTest, WaitAnyReturnsTheOneThatIsReady) {
  std::vector<PromiseEnds<int>> all;
  for (int i = 0; i < 5; ++i) all.push_back(MakePromise<int>());
  std::vector<Future<int>> futures;
  for (PromiseEnds<int>& ends : all) futures.push_back(std::move(ends.future));
  ThreadProbe probe;
  for (const size_t next : {3u, 0u, 4u, 1u, 2u}) {
    VirtualThread reader = Spawn([&] {
      probe.Attach();
      absl::StatusOr<size_t> which = WaitAny(futures);
      EXPECT_THAT(which, IsOkAndHolds(next));
      EXPECT_THAT(futures[*which].Get(), IsOkAndHolds(static_cast<int>(next)));
    });
    probe.AwaitParked();
    all[next].promise.Set(static_cast<int>(next));
    ASSERT_OK(reader.Join());
  }
}

BOBBIN_TEST(FutureWaitTest, WaitAnyTakesFuturesOfDifferentTypes) {
  auto [number, a] = MakePromise<int>();
  auto [text, b] = MakePromise<std::string>();
  auto [nothing, c] = MakePromise<void>();
  text.Set("here");
  EXPECT_THAT(WaitAny(a, b, c), IsOkAndHolds(1u));
  EXPECT_THAT(WaitAny(a, c, b), IsOkAndHolds(2u));
  EXPECT_THAT(b.Get(), IsOkAndHolds("here"));
  const DeadlineScope scope(milliseconds(1));
  EXPECT_THAT(WaitAny(a, b, c), StatusIs(kDeadlineExceeded));
  nothing.Set();
  EXPECT_OK(WaitAll(c));
  EXPECT_THAT(WaitAll(c, a), StatusIs(kDeadlineExceeded));
  EXPECT_THAT(WaitAll(a, c), StatusIs(kDeadlineExceeded));
  number.Set(1);
  EXPECT_OK(WaitAll(a, b, c));
}

BOBBIN_TEST(FutureWaitTest, WaitAllWaitsForTheLastOfThem) {
  std::vector<Future<int>> futures;
  std::vector<Promise<int>> promises;
  for (int i = 0; i < 4; ++i) {
    auto ends = MakePromise<int>();
    futures.push_back(std::move(ends.future));
    promises.push_back(std::move(ends.promise));
  }
  std::atomic<bool> is_last{false};
  TaskGroup group;
  group.Spawn([&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(WaitAll(futures));
    EXPECT_TRUE(is_last);
    return absl::OkStatus();
  });
  for (const size_t next : {2u, 0u, 3u}) {
    promises[next].Set(1);
    Yield();
  }
  is_last = true;
  promises[1].Set(1);
  ASSERT_OK(group.Wait());
  EXPECT_OK(WaitAll(std::vector<Future<int>>()));
}

// Producers on all carriers race for one waiter; each result is seen once, none is lost.
BOBBIN_FOREIGN_TEST(FutureWaitTest, ManyProducersRaceForOneWhoWaitsForAny) {
  constexpr size_t kFutures = 4;
  const int rounds = Rounds(4000);
  for (int round = 0; round < rounds; ++round) {
    std::array<Future<int>, kFutures> futures;
    Crew crew(runtime());
    for (size_t i = 0; i < kFutures; ++i) {
      auto ends = MakePromise<int>();
      futures[i] = std::move(ends.future);
      crew.Start(i == 3 && round % 8 == 0 ? Kind::kForeign : Kind::kVirtual,
                 [promise = std::move(ends.promise), turns = random().Below(150)]() mutable {
                   Spin(turns);
                   promise.Set(1);
                 });
    }
    crew.Start(Kind::kVirtual, [&] {
      for (size_t i = 0; i < kFutures; ++i) {
        const absl::StatusOr<size_t> which = WaitAny(futures);
        ASSERT_OK(which);
        ASSERT_THAT(futures[*which].Get(), IsOkAndHolds(1));
      }
    });
  }
}

// --- Races of set, deadline, cancel and end.

BOBBIN_TEST(FutureTest, WhatTheSetterDidIsSeenByTheReader) {
  const int rounds = Rounds(2000);
  for (int round = 0; round < rounds; ++round) {
    auto [promise, future] = MakePromise<void>();
    int data = 0;
    VirtualThread setter = Spawn({.placement = Placement::kSpread}, [&, &promise = promise] {
      data = round + 1;
      promise.Set();
    });
    ASSERT_OK(future.Get());
    ASSERT_EQ(data, round + 1);
    ASSERT_OK(setter.Join());
  }
}

// A reader with a deadline and a cancel against a setter: each wait ends once, and the result is
// got by the first Get that says so, or is there afterwards.
BOBBIN_TEST(FutureTest, SetDeadlineAndCancelRaceLosesNoResult) {
  const int rounds = Rounds(40'000);
  for (int round = 0; round < rounds; ++round) {
    auto [promise, future] = MakePromise<int>();
    VirtualThread setter =
        Spawn({.placement = Placement::kSpread},
              [promise = std::move(promise), turns = random().Below(400)]() mutable {
                Spin(turns);
                promise.Set(9);
              });
    VirtualThread reader = Spawn(
        {.placement = Placement::kSpread}, [&, &future = future, us = random().Between(0, 20)] {
          absl::StatusOr<int> got = future.GetUntil(Deadline::After(microseconds(us)));
          if (got.ok()) {
            EXPECT_EQ(*got, 9);
            EXPECT_FALSE(future);
            return;
          }
          EXPECT_TRUE(future);
          EXPECT_THAT(got.status().code(), testing::AnyOf(kDeadlineExceeded, kCancelled));
        });
    if (round % 2 == 0) reader.Cancel();
    ASSERT_OK(reader.Join());
    if (future) {
      ASSERT_THAT(future.Get(), IsOkAndHolds(9));
    }
    ASSERT_OK(setter.Join());
  }
}

// Both ends are destroyed as soon as they have done their part; nobody touches what is gone.
BOBBIN_FOREIGN_TEST(FutureTest, BothEndsMayGoAtAnyTime) {
  const int rounds = Rounds(4000);
  std::atomic<int> live{0};
  for (int round = 0; round < rounds; ++round) {
    auto ends = MakePromise<Counted>();
    Crew crew(runtime());
    const int what = static_cast<int>(random().Below(3));
    crew.Start(Kind::kVirtual,
               [&, promise = std::move(ends.promise), turns = random().Below(200), what]() mutable {
                 Spin(turns);
                 if (what != 0) promise.Set(Counted(live));
               });
    crew.Start(Kind::kVirtual,
               [&, future = std::move(ends.future), turns = random().Below(200), what]() mutable {
                 Spin(turns);
                 if (what == 2) return;
                 EXPECT_EQ(future.Get().ok(), what == 1);
               });
  }
  EXPECT_EQ(live, 0);
}

BOBBIN_FOREIGN_TEST(FutureTest, SeveralSettersRaceAndOneWins) {
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto [promise, future] = MakePromise<int>();
    std::atomic<int> winner{-1};
    std::atomic<int> winners{0};
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) {
      crew.Start(Kind::kVirtual, [&, &promise = promise, i, turns = random().Below(100)] {
        Spin(turns);
        if (!promise.TrySet(i)) return;
        winner = i;
        ++winners;
      });
    }
    crew.Join();
    ASSERT_EQ(winners, 1);
    ASSERT_THAT(future.Get(), IsOkAndHolds(winner.load()));
  }
}

// A set from outside reaches a runtime that sleeps, and the other way round.
BOBBIN_FOREIGN_TEST(FutureTest, VirtualAndForeignThreadsUnparkEachOther) {
  const int rounds = Rounds(600);
  for (int round = 0; round < rounds; ++round) {
    auto there = MakePromise<int>();
    auto back = MakePromise<int>();
    VirtualThread other = runtime().Spawn(
        {.placement = Placement::kSpread},
        [in = std::move(there.future), out = std::move(back.promise)]() mutable -> absl::Status {
          BOBBIN_ASSIGN_OR_RETURN(const int value, in.Get());
          out.Set(value + 1);
          return absl::OkStatus();
        });
    there.promise.Set(round);
    ASSERT_THAT(back.future.GetUntil(Deadline::After(std::chrono::seconds(30))),
                IsOkAndHolds(round + 1));
    ASSERT_OK(other.Join());
  }
}

}  // namespace
}  // namespace bobbin::test
