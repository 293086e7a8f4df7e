// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/select.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
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

// A function that must not be called.
auto Never() {
  return [] { ADD_FAILURE() << "this case must not win"; };
}

BOBBIN_TEST(SelectTest, OfTheCasesTheReadyOneIsDone) {
  auto [numbers_in, numbers] = MakeChannel<int>({.capacity = 1});
  auto [texts_in, texts] = MakeChannel<std::string>({.capacity = 1});
  int number = 0;
  std::string text;
  const auto once = [&, &numbers = numbers, &texts = texts] {
    return Select(OnReceive(numbers, [&](int value) { number = value; }),
                  OnReceive(texts, [&](std::string value) { text = std::move(value); }));
  };
  ASSERT_OK(texts_in.Send("one"));
  EXPECT_OK(once());
  EXPECT_EQ(text, "one");
  EXPECT_EQ(number, 0);
  ASSERT_OK(numbers_in.Send(2));
  EXPECT_OK(once());
  EXPECT_EQ(number, 2);
  EXPECT_THAT(numbers.TryReceive(), StatusIs(kUnavailable));
  EXPECT_THAT(texts.TryReceive(), StatusIs(kUnavailable));
}

BOBBIN_TEST(SelectTest, ItReturnsWhatTheFunctionReturnsAndPassesItsException) {
  Event set;
  set.Set();
  EXPECT_OK(Select(OnEvent(set, [] {})));
  EXPECT_EQ(Select(OnEvent(set, [] { return absl::DataLossError("torn"); })).message(), "torn");
  EXPECT_THROW(static_cast<void>(Select(OnEvent(set, [] { throw std::runtime_error("thrown"); }))),
               std::runtime_error);
}

// Each kind of case, while the Select waits.
BOBBIN_TEST(SelectTest, ItWaitsForEachKindOfCase) {
  enum Kind { kReceive, kSend, kEvent, kFuture, kAcquire, kKinds };
  for (int kind = 0; kind < kKinds; ++kind) {
    auto [in_sender, in] = MakeChannel<int>({.capacity = 1});
    auto [out, out_receiver] = MakeChannel<int>({.capacity = 1});
    ASSERT_OK(out.Send(0));  // Full.
    Event event;
    auto [promise, future] = MakePromise<int>();
    Semaphore slots(1);
    ThreadProbe probe;
    int won = -1;
    VirtualThread selecting = Spawn([&, &in = in, &out = out, &future = future] {
      probe.Attach();
      return Select(OnReceive(in, [&](int value) { won = value == 5 ? kReceive : kKinds; }),
                    OnSend(out, 6, [&] { won = kSend; }), OnEvent(event, [&] { won = kEvent; }),
                    OnFuture(future, [&](int value) { won = value == 7 ? kFuture : kKinds; }),
                    OnAcquire(slots, 2, [&] { won = kAcquire; }));
    });
    probe.AwaitParked();
    EXPECT_EQ(won, -1);
    if (kind == kReceive) {
      ASSERT_OK(in_sender.Send(5));
    } else if (kind == kSend) {
      EXPECT_THAT(out_receiver.Receive(), IsOkAndHolds(0));
    } else if (kind == kEvent) {
      event.Set();
    } else if (kind == kFuture) {
      promise.Set(7);
    } else {
      slots.Release();
    }
    ASSERT_OK(selecting.Join());
    EXPECT_EQ(won, kind);

    // The others are as if nobody had looked.
    EXPECT_EQ(slots.available(), kind == kAcquire ? 0 : 1);
    EXPECT_EQ(static_cast<bool>(future), kind != kFuture);
    if (kind != kReceive) {
      ASSERT_OK(in_sender.TrySend(1));
      EXPECT_THAT(in.Receive(), IsOkAndHolds(1));
    }
    EXPECT_THAT(out_receiver.TryReceive(), IsOkAndHolds(kind == kSend ? 6 : 0));
    EXPECT_THAT(out_receiver.TryReceive(), StatusIs(kUnavailable));
  }
}

BOBBIN_TEST(SelectTest, AValueThatIsNotSentIsAsBefore) {
  auto [sender, receiver] = MakeChannel<std::unique_ptr<int>>({.capacity = 1});
  ASSERT_OK(sender.Send(std::make_unique<int>(1)));
  auto value = std::make_unique<int>(2);
  Event set;
  set.Set();
  EXPECT_OK(Select(OnSend(sender, std::move(value), Never()), OnEvent(set, [] {})));
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 2);
  ASSERT_OK(receiver.Receive());
  EXPECT_OK(Select(OnSend(sender, std::move(value), [] {})));
  EXPECT_EQ(value, nullptr);
}

BOBBIN_TEST(SelectTest, AnLvalueIsSentAsACopy) {
  auto [sender, receiver] = MakeChannel<std::string>({.capacity = 1});
  const std::string text = "text";
  EXPECT_OK(Select(OnSend(sender, text, [] {})));
  EXPECT_EQ(text, "text");
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds("text"));
}

BOBBIN_TEST(SelectTest, AClosedChannelWinsWithItsError) {
  auto [sender, receiver] = MakeChannel<int>();
  sender.Close();
  EXPECT_THAT(Select(OnReceive(receiver, [](int) { ADD_FAILURE(); })), StatusIs(kOutOfRange));
  EXPECT_THAT(Select(OnSend(sender, 1, Never())), StatusIs(kFailedPrecondition));
  absl::Status receive_end;
  absl::Status send_end;
  EXPECT_OK(Select(OnReceive(
      receiver, [&](const absl::StatusOr<int>& value) { receive_end = value.status(); })));
  EXPECT_OK(Select(OnSend(sender, 1, [&](const absl::Status& sent) { send_end = sent; })));
  EXPECT_THAT(receive_end, StatusIs(kOutOfRange));
  EXPECT_THAT(send_end, StatusIs(kFailedPrecondition));
}

BOBBIN_TEST(SelectTest, ClosingWakesWhoWaits) {
  auto [sender, receiver] = MakeChannel<int>();
  Event never;
  ThreadProbe probe;
  for (const bool sends : {false, true}) {
    auto ends = MakeChannel<int>();
    VirtualThread selecting = Spawn([&] {
      probe.Attach();
      return sends ? Select(OnSend(ends.sender, 1, Never()), OnEvent(never, Never()))
                   : Select(OnEvent(never, Never()),
                            OnReceive(ends.receiver, [](int) { ADD_FAILURE(); }));
    });
    probe.AwaitParked();
    ends.sender.Close();
    EXPECT_THAT(selecting.Join(), StatusIs(sends ? kFailedPrecondition : kOutOfRange));
  }
}

BOBBIN_TEST(SelectTest, AFailedFutureWinsWithItsErrorAndRethrowsItsException) {
  auto [failing, failed] = MakePromise<int>();
  auto [throwing, thrown] = MakePromise<void>();
  auto [other, heard] = MakePromise<int>();
  failing.Set(absl::DataLossError("torn"));
  throwing.SetException(std::make_exception_ptr(std::runtime_error("thrown")));
  other.Set(absl::DataLossError("heard"));
  EXPECT_EQ(Select(OnFuture(failed, [](int) { ADD_FAILURE(); })).message(), "torn");
  EXPECT_THROW(static_cast<void>(Select(OnFuture(thrown, Never()))), std::runtime_error);
  std::string message;
  EXPECT_OK(Select(OnFuture(heard, [&](const absl::StatusOr<int>& result) {
    message = std::string(MessageOf(result.status()));
  })));
  EXPECT_EQ(message, "heard");
}

BOBBIN_TEST(SelectTest, WhatHoldsNothingIsLeftOut) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 1});
  ASSERT_OK(sender.Send(1));
  Future<int> no_future;
  const auto fail = [](int) { ADD_FAILURE() << "there is nothing"; };
  int got = 0;
  EXPECT_OK(Select(OnReceive(Receiver<int>(), fail), OnSend(Sender<int>(), 1, Never()),
                   OnFuture(no_future, fail),
                   OnReceive(receiver, [&](int value) { got = value; })));
  EXPECT_EQ(got, 1);
  const DeadlineScope scope(milliseconds(1));
  EXPECT_THAT(Select(OnReceive(Receiver<int>(), fail)), StatusIs(kDeadlineExceeded));
}

BOBBIN_TEST(SelectTest, TrySelectNeverWaits) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 1});
  const NoSuspendScope scope;
  int got = 0;
  const auto take = [&](int value) { got = value; };
  EXPECT_THAT(TrySelect(OnReceive(receiver, take)), StatusIs(kUnavailable));
  EXPECT_OK(TrySelect(OnReceive(receiver, take), OnSend(sender, 3, [] {})));
  EXPECT_OK(TrySelect(OnReceive(receiver, take)));
  EXPECT_EQ(got, 3);
}

BOBBIN_TEST(SelectTest, ItsDeadlineWinsWhenNothingElseIsReady) {
  Event event;
  bool has_passed = false;
  EXPECT_OK(Select(OnEvent(event, Never()),
                   OnDeadline(Deadline::After(milliseconds(1)), [&] { has_passed = true; }),
                   OnDeadline(Deadline::After(hours(1)), Never())));
  EXPECT_TRUE(has_passed);
  EXPECT_OK(CheckStop());
  EXPECT_THAT(Select(OnDeadline(Deadline::After(milliseconds(-1)),
                                [] { return absl::DataLossError("late"); })),
              StatusIs(absl::StatusCode::kDataLoss));
  event.Set();
  EXPECT_OK(Select(OnDeadline(Deadline::After(milliseconds(-1)), Never()), OnEvent(event, [] {})));
}

BOBBIN_TEST(SelectTest, AnOuterDeadlineThatIsEarlierIsNoCaseOfItsOwn) {
  Event event;
  const DeadlineScope scope(milliseconds(1));
  EXPECT_THAT(Select(OnEvent(event, Never()), OnDeadline(Deadline::After(hours(1)), Never())),
              StatusIs(kDeadlineExceeded));
  EXPECT_THAT(Select(OnEvent(event, Never()), OnDeadline(Deadline::After(hours(1)), Never())),
              StatusIs(kDeadlineExceeded));
}

BOBBIN_TEST(SelectTest, ACancelEndsTheWait) {
  Event event;
  auto [sender, receiver] = MakeChannel<int>();
  ThreadProbe probe;
  VirtualThread selecting = Spawn([&, &receiver = receiver] {
    probe.Attach();
    return Select(OnEvent(event, Never()), OnReceive(receiver, [](int) { ADD_FAILURE(); }),
                  OnDeadline(Deadline::After(hours(1)), Never()));
  });
  probe.AwaitParked();
  selecting.Cancel();
  EXPECT_THAT(selecting.Join(), StatusIs(kCancelled));
  EXPECT_THAT(sender.TrySend(1), StatusIs(kUnavailable));  // It has left the queue.
}

BOBBIN_TEST(SelectTest, AThreadThatIsToStopTakesAReadyCaseButDoesNotWait) {
  Event set;
  Event never;
  set.Set();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(Select(OnEvent(never, Never()), OnEvent(set, [] {})));
    EXPECT_THAT(Select(OnEvent(never, Never())), StatusIs(kCancelled));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
}

// Whoever is always ready does not keep the others from their turn.
BOBBIN_TEST(SelectTest, AmongReadyCasesNoneStarves) {
  constexpr size_t kCases = 3;
  std::array<ChannelEnds<int>, kCases> channels{MakeChannel<int>({.capacity = 1}),
                                                MakeChannel<int>({.capacity = 1}),
                                                MakeChannel<int>({.capacity = 1})};
  std::array<int, kCases> taken{};
  constexpr int kLooks = 3000;
  for (int look = 0; look < kLooks; ++look) {
    for (ChannelEnds<int>& ends : channels) static_cast<void>(ends.sender.TrySend(1));
    ASSERT_OK(Select(OnReceive(channels[0].receiver, [&](int) { ++taken[0]; }),
                     OnReceive(channels[1].receiver, [&](int) { ++taken[1]; }),
                     OnReceive(channels[2].receiver, [&](int) { ++taken[2]; })));
  }
  for (const int count : taken) EXPECT_GT(count, kLooks / static_cast<int>(kCases) / 2);
}

BOBBIN_TEST(SelectTest, ItWaitsItsTurnInAQueue) {
  auto [sender, receiver] = MakeChannel<int>();
  Event never;
  Log<int> order;
  std::array<ThreadProbe, 4> probes;
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&, i, &receiver = receiver]() -> absl::Status {
      probes[static_cast<size_t>(i)].Attach();
      if (i % 2 == 0) {
        return Select(OnEvent(never, Never()), OnReceive(receiver, [&](int) { order.Add(i); }));
      }
      BOBBIN_RETURN_IF_ERROR(receiver.Receive().status());
      order.Add(i);
      return absl::OkStatus();
    });
    probes[static_cast<size_t>(i)].AwaitParked();
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(sender.Send(1));
    AwaitTrue([&] { return order.size() == static_cast<size_t>(i) + 1; });
  }
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre(0, 1, 2, 3));
}

BOBBIN_TEST(SelectTest, BothEndsOfOneChannelInOneSelectDoNotMeet) {
  auto [sender, receiver] = MakeChannel<int>();
  ThreadProbe probe;
  std::atomic<int> received{0};
  VirtualThread selecting = Spawn([&, &sender = sender, &receiver = receiver] {
    probe.Attach();
    return Select(OnSend(sender, 1, [] {}),
                  OnReceive(receiver, [&](int value) { received = value; }));
  });
  probe.AwaitParked();
  EXPECT_OK(sender.Send(7));
  ASSERT_OK(selecting.Join());
  EXPECT_EQ(received, 7);
}

BOBBIN_TEST(SelectTest, TheSameThingInTwoCasesWinsOnce) {
  Event event;
  Semaphore slots(0);
  int wins = 0;
  ThreadProbe probe;
  VirtualThread selecting = Spawn([&] {
    probe.Attach();
    return Select(OnEvent(event, [&] { ++wins; }), OnAcquire(slots, 1, [&] { ++wins; }),
                  OnEvent(event, [&] { ++wins; }), OnAcquire(slots, 1, [&] { ++wins; }));
  });
  probe.AwaitParked();
  slots.Release(2);
  ASSERT_OK(selecting.Join());
  EXPECT_EQ(wins, 1);
  EXPECT_EQ(slots.available(), 1);
  event.Set();
}

// A request at a semaphore's head that leaves lets the smaller ones behind it go on.
BOBBIN_TEST(SelectTest, ALargeRequestThatLeavesLetsTheSmallOnesGoOn) {
  Semaphore slots(1);
  Event event;
  std::array<ThreadProbe, 2> probes;
  VirtualThread large = Spawn([&] {
    probes[0].Attach();
    return Select(OnAcquire(slots, 2, Never()), OnEvent(event, [] {}));
  });
  probes[0].AwaitParked();
  VirtualThread small = Spawn([&] {
    probes[1].Attach();
    return slots.Acquire();
  });
  probes[1].AwaitParked();
  event.Set();
  ASSERT_OK(large.Join());
  ASSERT_OK(small.Join());
  EXPECT_EQ(slots.available(), 0);
}

// --- Races.

// Senders on all carriers race for one Select over their channels: every value arrives, once.
BOBBIN_FOREIGN_TEST(SelectTest, NoValueIsLostOrTakenTwiceWhenManySendAtOnce) {
  constexpr int kChannels = 3;
  for (const size_t capacity : {size_t{0}, size_t{1}}) {
    std::vector<ChannelEnds<int>> channels;
    for (int i = 0; i < kChannels; ++i)
      channels.push_back(MakeChannel<int>({.capacity = capacity}));
    int values = Rounds(20'000);
    std::array<int, kChannels> next{};
    Crew crew(runtime());
    for (size_t i = 0; i < kChannels; ++i) {
      crew.Start(i == 2 ? Kind::kForeign : Kind::kVirtual,
                 [sender = std::move(channels[i].sender), values, own = random().Fork()]() mutable {
                   for (int value = 0; value < values; ++value) {
                     Spin(own.Below(60));
                     ASSERT_OK(sender.Send(std::move(value)));
                   }
                   sender.Close();
                 });
    }
    crew.Start(Kind::kVirtual, [&] {
      std::array<Receiver<int>, kChannels> in;
      for (size_t i = 0; i < kChannels; ++i) in[i] = std::move(channels[i].receiver);
      const auto take = [&](size_t i) {
        return [&, i](const absl::StatusOr<int>& value) {
          if (!value.ok()) {
            in[i] = Receiver<int>();
            return;
          }
          ASSERT_EQ(*value, next[i]++);
        };
      };
      while (in[0] || in[1] || in[2]) {
        ASSERT_OK(Select(OnReceive(in[0], take(0)), OnReceive(in[1], take(1)),
                         OnReceive(in[2], take(2))));
      }
    });
    crew.Join();
    for (const int count : next) EXPECT_EQ(count, values);
  }
}

// Threads that all select over sending and receiving on the same rendezvous channels meet each
// other in pairs: what one has sent another has received.
BOBBIN_FOREIGN_TEST(SelectTest, SelectsThatFaceEachOtherMeetInPairs) {
  constexpr int kThreads = 4;
  auto first = MakeChannel<int>();
  auto second = MakeChannel<int>();
  const int rounds = Rounds(20'000);
  std::atomic<int64_t> sent{0};
  std::atomic<int64_t> received{0};
  std::atomic<int> sends{0};
  std::atomic<int> receives{0};
  std::atomic<int> live{kThreads};
  Event over;
  Crew crew(runtime());
  for (int i = 0; i < kThreads; ++i) {
    crew.Start(i == 0 ? Kind::kForeign : Kind::kVirtual, [&, i, own = random().Fork()]() mutable {
      bool is_over = false;
      const auto take = [&](int value) {
        received += value;
        ++receives;
      };
      int value = 0;
      const auto gave = [&] {
        sent += value;
        ++sends;
      };
      for (int round = 0; round < rounds && !is_over; ++round) {
        Spin(own.Below(40));
        value = i * rounds + round;
        ASSERT_OK(own.OneIn(2)
                      ? Select(OnSend(first.sender, value, gave), OnReceive(second.receiver, take),
                               OnReceive(first.receiver, take),
                               OnEvent(over, [&] { is_over = true; }))
                      : Select(OnReceive(second.receiver, take), OnReceive(first.receiver, take),
                               OnSend(second.sender, value, gave),
                               OnEvent(over, [&] { is_over = true; })));
      }
      // The last one has nobody to meet.
      if (--live == 1) over.Set();
    });
  }
  crew.Join();
  EXPECT_EQ(sends, receives);
  EXPECT_EQ(sent, received);
  EXPECT_GT(sends, rounds);
}

// Two that face each other with nothing else: they meet every time.
BOBBIN_FOREIGN_TEST(SelectTest, TwoThatFaceEachOtherAlwaysMeet) {
  auto there = MakeChannel<int>();
  auto back = MakeChannel<int>();
  const int rounds = Rounds(30'000);
  std::array<int, 2> gave{};
  std::array<int, 2> took{};
  Crew crew(runtime());
  crew.Start(Kind::kVirtual, [&, own = random().Fork()]() mutable {
    for (int round = 0; round < rounds; ++round) {
      Spin(own.Below(50));
      ASSERT_OK(Select(OnSend(there.sender, round, [&] { ++gave[0]; }),
                       OnReceive(back.receiver, [&](int) { ++took[0]; })));
    }
  });
  crew.Start(Kind::kVirtual, [&, own = random().Fork()]() mutable {
    for (int round = 0; round < rounds; ++round) {
      Spin(own.Below(50));
      ASSERT_OK(Select(OnSend(back.sender, round, [&] { ++gave[1]; }),
                       OnReceive(there.receiver, [&](int) { ++took[1]; })));
    }
  });
  crew.Join();
  EXPECT_EQ(gave[0], took[1]);
  EXPECT_EQ(gave[1], took[0]);
  EXPECT_EQ(gave[0] + took[0], rounds);
}

// Everything at once against deadlines and cancels: what was taken is taken once, what was not is
// still there.
BOBBIN_FOREIGN_TEST(SelectTest, ReadyCasesDeadlinesAndCancelsRace) {
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    auto in = MakeChannel<int>();
    auto out = MakeChannel<int>();
    auto answer = MakePromise<int>();
    Semaphore slots(0);
    Event stop;
    int wins = 0;
    bool has_received = false;
    bool has_sent = false;
    bool has_acquired = false;
    VirtualThread selecting = runtime().Spawn(
        {.placement = Placement::kSpread},
        [&, us = random().Between(0, 60), turns = random().Below(200)]() -> absl::Status {
          Spin(turns);
          return Select(OnReceive(in.receiver,
                                  [&](int) {
                                    has_received = true;
                                    ++wins;
                                  }),
                        OnSend(out.sender, 2,
                               [&] {
                                 has_sent = true;
                                 ++wins;
                               }),
                        OnFuture(answer.future, [&](int) { ++wins; }),
                        OnAcquire(slots, 1,
                                  [&] {
                                    has_acquired = true;
                                    ++wins;
                                  }),
                        OnEvent(stop, [&] { ++wins; }),
                        OnDeadline(Deadline::After(microseconds(us)), [&] { ++wins; }));
        });
    std::atomic<int> sent{0};
    std::atomic<int> received{0};
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [&, turns = random().Below(300)] {
      Spin(turns);
      if (in.sender.SendUntil(1, Deadline::After(microseconds(30))).ok()) ++sent;
    });
    crew.Start(Kind::kVirtual, [&, turns = random().Below(300)] {
      Spin(turns);
      if (out.receiver.ReceiveUntil(Deadline::After(microseconds(30))).ok()) ++received;
      slots.Release();
    });
    crew.Start(Kind::kVirtual, [&, turns = random().Below(300)] {
      Spin(turns);
      answer.promise.Set(3);
      stop.Set();
    });
    Spin(random().Below(300));
    if (round % 3 == 0) selecting.Cancel();
    const absl::Status status = selecting.Join();
    crew.Join();
    ASSERT_THAT(status.code(), testing::AnyOf(kOk, kCancelled));
    ASSERT_EQ(wins, status.ok() ? 1 : 0);
    ASSERT_EQ(sent, has_received ? 1 : 0);
    ASSERT_EQ(received, has_sent ? 1 : 0);
    ASSERT_EQ(slots.available(), has_acquired ? 0 : 1);
  }
}

// What a Select has waited for may be destroyed as soon as it returns.
BOBBIN_FOREIGN_TEST(SelectTest, WhatItWaitedForMayBeDestroyedWhenItReturns) {
  const int rounds = Rounds(3000);
  for (int round = 0; round < rounds; ++round) {
    auto* const first = new Event;
    auto* const second = new Event;
    auto ends = MakeChannel<int>();
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [first, turns = random().Below(200)] {
      Spin(turns);
      first->Set();
    });
    crew.Start(Kind::kVirtual, [sender = std::move(ends.sender), turns = random().Below(200)] {
      Spin(turns);
      static_cast<void>(sender.TrySend(1));
    });
    crew.Start(Kind::kVirtual, [=, receiver = std::move(ends.receiver)]() mutable {
      // The setter of `first` may still be in its Set when another case wins, so wait for it.
      ASSERT_OK(Select(OnEvent(*second, Never()), OnEvent(*first, [] {}),
                       OnReceive(receiver, [](const absl::StatusOr<int>&) {})));
      receiver = Receiver<int>();
      delete second;
      ASSERT_OK(first->Wait());
      delete first;
    });
  }
}

TEST(SelectDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Event event;
        const NoSuspendScope scope;
        static_cast<void>(Select(OnEvent(event, [] {})));
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
