// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace {
// Counted by every thread. Not a step of a simulation: operator new is called inside of one.
std::atomic_int64_t allocations{0};
}  // namespace

// A sanitizer has its own. Not inlined, for the compiler would see half of a pair and warn.
#if !defined(BOBBIN_TEST_ADDRESS_SANITIZER) && !defined(BOBBIN_TEST_THREAD_SANITIZER)
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A value that can only be moved, and is counted: two of them at once are one too many.
class Token {
 public:
  explicit Token(int number, std::atomic<int>* alive = nullptr) : number_(number), alive_(alive) {
    if (alive_ != nullptr) ++*alive_;
  }
  Token(Token&& other) noexcept
      : number_(std::exchange(other.number_, kGone)),
        alive_(std::exchange(other.alive_, nullptr)) {}
  Token& operator=(Token&&) = delete;
  ~Token() {
    if (alive_ != nullptr) --*alive_;
  }
  int number() const { return number_; }

  static constexpr int kGone = -1;

 private:
  int number_;
  std::atomic<int>* alive_;
};

BOBBIN_TEST(ChannelTest, ValuesArriveInTheOrderInWhichTheyWereSent) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 3});
  VirtualThread producer = Spawn([sender = std::move(sender)]() -> absl::Status {
    for (int i = 0; i < 100; ++i) BOBBIN_RETURN_IF_ERROR(sender.Send(i));
    return absl::OkStatus();
  });
  for (int i = 0; i < 100; ++i) ASSERT_THAT(receiver.Receive(), IsOkAndHolds(i));
  EXPECT_THAT(receiver.Receive(), StatusIs(kOutOfRange));
  ASSERT_OK(producer.Join());
}

BOBBIN_TEST(ChannelTest, AFullChannelMakesTheSenderWait) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 2});
  {
    const NoSuspendScope scope;
    ASSERT_OK(sender.Send(1));
    ASSERT_OK(sender.Send(2));
  }
  EXPECT_THAT(sender.TrySend(3), StatusIs(kUnavailable));
  ThreadProbe probe;
  VirtualThread producer = Spawn([&probe, sender = sender] {
    probe.Attach();
    return sender.Send(3);
  });
  probe.AwaitParked();
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds(1));
  ASSERT_OK(producer.Join());
  EXPECT_THAT(receiver.TryReceive(), IsOkAndHolds(2));
  EXPECT_THAT(receiver.TryReceive(), IsOkAndHolds(3));
  EXPECT_THAT(receiver.TryReceive(), StatusIs(kUnavailable));
}

BOBBIN_TEST(ChannelTest, WithoutABufferSendReturnsWhenTheReceiverHasTheValue) {
  auto [sender, receiver] = MakeChannel<int>();
  EXPECT_THAT(sender.TrySend(0), StatusIs(kUnavailable));
  EXPECT_THAT(receiver.TryReceive(), StatusIs(kUnavailable));
  std::atomic<bool> is_sent{false};
  ThreadProbe probe;
  VirtualThread producer = Spawn([&probe, &is_sent, sender = sender] {
    probe.Attach();
    EXPECT_OK(sender.Send(7));
    is_sent = true;
  });
  probe.AwaitParked();
  EXPECT_FALSE(is_sent);
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds(7));
  ASSERT_OK(producer.Join());

  // The other way round: the receiver is there first.
  VirtualThread consumer = Spawn([&probe, receiver = receiver] {
    probe.Attach();
    EXPECT_THAT(receiver.Receive(), IsOkAndHolds(8));
  });
  probe.AwaitParked();
  const NoSuspendScope scope;
  EXPECT_OK(sender.TrySend(8));
}

BOBBIN_TEST(ChannelTest, WaitersAreServedInTheOrderInWhichTheyCame) {
  auto [sender, receiver] = MakeChannel<int>();
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe receivers[3];
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&receivers, i, receiver = receiver] {
      receivers[i].Attach();
      EXPECT_THAT(receiver.Receive(), IsOkAndHolds(i));
    });
    receivers[i].AwaitParked();
  }
  for (int i = 0; i < 3; ++i) ASSERT_OK(sender.Send(i));
  ASSERT_OK(group.Wait());

  ThreadProbe senders[3];
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&senders, i, sender = sender] {
      senders[i].Attach();
      return sender.Send(i);
    });
    senders[i].AwaitParked();
  }
  for (int i = 0; i < 3; ++i) EXPECT_THAT(receiver.Receive(), IsOkAndHolds(i));
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(ChannelTest, AValueThatCanOnlyBeMovedArrivesAsItself) {
  for (const size_t capacity : {size_t{0}, size_t{1}}) {
    auto [sender, receiver] = MakeChannel<std::unique_ptr<int>>({.capacity = capacity});
    auto made = std::make_unique<int>(5);
    int* const address = made.get();
    VirtualThread producer = Spawn([sender = sender, made = std::move(made)]() mutable {
      return sender.Send(std::move(made));
    });
    const absl::StatusOr<std::unique_ptr<int>> received = receiver.Receive();
    ASSERT_OK(received);
    EXPECT_EQ(received->get(), address);
    ASSERT_OK(producer.Join());
  }
}

// A failed Send leaves its value alone: these tests look at values that they have moved.
// NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
BOBBIN_TEST(ChannelTest, AFailedSendLeavesTheValueWithItsSender) {
  auto [sender, receiver] = MakeChannel<Token>();
  {
    Token token(1);
    EXPECT_THAT(sender.TrySend(std::move(token)), StatusIs(kUnavailable));
    EXPECT_EQ(token.number(), 1);
  }
  {
    Token token(2);
    EXPECT_THAT(sender.SendUntil(std::move(token), Deadline::After(milliseconds(1))),
                StatusIs(kDeadlineExceeded));
    EXPECT_EQ(token.number(), 2);
  }
  ThreadProbe probe;
  VirtualThread cancelled = Spawn([&probe, sender = sender] {
    Token token(3);
    probe.Attach();
    EXPECT_THAT(sender.Send(std::move(token)), StatusIs(kCancelled));
    EXPECT_EQ(token.number(), 3);
  });
  probe.AwaitParked();
  cancelled.Cancel();
  ASSERT_OK(cancelled.Join());
  VirtualThread closed = Spawn([&probe, sender = sender] {
    Token token(4);
    probe.Attach();
    EXPECT_THAT(sender.Send(std::move(token)), StatusIs(kFailedPrecondition));
    EXPECT_EQ(token.number(), 4);
  });
  probe.AwaitParked();
  sender.Close();
  ASSERT_OK(closed.Join());
  Token token(5);
  EXPECT_THAT(sender.Send(std::move(token)), StatusIs(kFailedPrecondition));
  EXPECT_EQ(token.number(), 5);
}

BOBBIN_TEST(ChannelTest, AfterCloseWhatIsBufferedIsStillReceived) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 4});
  ASSERT_OK(sender.Send(1));
  ASSERT_OK(sender.Send(2));
  sender.Close();
  sender.Close();
  EXPECT_THAT(sender.Send(3), StatusIs(kFailedPrecondition));
  EXPECT_THAT(sender.TrySend(3), StatusIs(kFailedPrecondition));
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds(1));
  EXPECT_THAT(receiver.TryReceive(), IsOkAndHolds(2));
  EXPECT_THAT(receiver.Receive(), StatusIs(kOutOfRange));
  EXPECT_THAT(receiver.TryReceive(), StatusIs(kOutOfRange));
  EXPECT_THAT(receiver.ReceiveUntil(Deadline::Never()), StatusIs(kOutOfRange));
}

BOBBIN_TEST(ChannelTest, CloseEndsEveryWait) {
  auto [sender, receiver] = MakeChannel<int>();
  ThreadProbe probes[3];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&probe, receiver = receiver] {
      probe.Attach();
      EXPECT_THAT(receiver.Receive(), StatusIs(kOutOfRange));
    });
    probe.AwaitParked();
  }
  sender.Close();
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(ChannelTest, TheLastSenderCloses) {
  auto [first, receiver] = MakeChannel<int>();
  ThreadProbe probe;
  VirtualThread consumer = Spawn([&probe, receiver = receiver] {
    probe.Attach();
    EXPECT_THAT(receiver.Receive(), StatusIs(kOutOfRange));
  });
  probe.AwaitParked();
  Sender<int> second = first;
  Sender<int> third = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what it promises.
  second = Sender<int>();
  EXPECT_TRUE(probe.IsParked());
  third = Sender<int>();
  ASSERT_OK(consumer.Join());
}

BOBBIN_TEST(ChannelTest, WithoutReceiversNothingCanBeSent) {
  std::atomic<int> alive{0};
  auto [sender, first] = MakeChannel<Token>({.capacity = 1});
  ASSERT_OK(sender.Send(Token(1, &alive)));
  ThreadProbe probe;
  VirtualThread producer = Spawn([&probe, &alive, sender = sender] {
    Token token(2, &alive);
    probe.Attach();
    EXPECT_THAT(sender.Send(std::move(token)), StatusIs(kFailedPrecondition));
    EXPECT_EQ(token.number(), 2);
  });
  probe.AwaitParked();
  Receiver<Token> second = first;
  first = Receiver<Token>();
  EXPECT_TRUE(probe.IsParked());
  EXPECT_EQ(alive, 2);
  second = Receiver<Token>();
  ASSERT_OK(producer.Join());
  // What was in the buffer went with the last receiver.
  EXPECT_EQ(alive, 0);
  EXPECT_THAT(sender.Send(Token(3)), StatusIs(kFailedPrecondition));
}

BOBBIN_TEST(ChannelTest, AValueMayOwnAnEndOfItsOwnChannel) {
  struct Knot {
    Sender<Knot> sender;
    Receiver<Knot> receiver;
  };
  auto [sender, receiver] = MakeChannel<Knot>({.capacity = 2});
  ASSERT_OK(sender.Send(Knot{sender, Receiver<Knot>()}));
  ASSERT_OK(sender.Send(Knot{sender, Receiver<Knot>()}));
  sender = Sender<Knot>();
  receiver = Receiver<Knot>();  // Ends the buffered values, and with them the last senders.
}

BOBBIN_TEST(ChannelTest, DeadlineAndCancelEndAReceive) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 1});
  EXPECT_THAT(receiver.ReceiveUntil(Deadline::After(milliseconds(1))), StatusIs(kDeadlineExceeded));
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(receiver.Receive(), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(receiver.Receive(), StatusIs(kDeadlineExceeded));
    // What need not wait succeeds all the same.
    EXPECT_OK(sender.Send(1));
    EXPECT_THAT(receiver.Receive(), IsOkAndHolds(1));
  }
  ThreadProbe probe;
  VirtualThread consumer = Spawn([&probe, receiver = receiver] {
    probe.Attach();
    EXPECT_THAT(receiver.Receive(), StatusIs(kCancelled));
    EXPECT_THAT(receiver.ReceiveUntil(Deadline::Never()), StatusIs(kCancelled));
  });
  probe.AwaitParked();
  consumer.Cancel();
  ASSERT_OK(consumer.Join());
  ASSERT_OK(sender.Send(2));
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds(2));
}

BOBBIN_TEST(ChannelTest, ARangeForEndsWhenTheChannelIsClosedAndEmpty) {
  auto [sender, receiver] = MakeChannel<Token>({.capacity = 2});
  VirtualThread producer = Spawn([sender = std::move(sender)]() -> absl::Status {
    for (int i = 0; i < 10; ++i) BOBBIN_RETURN_IF_ERROR(sender.Send(Token(i)));
    return absl::OkStatus();
  });
  std::vector<int> numbers;
  for (Token& token : receiver) numbers.push_back(token.number());
  EXPECT_THAT(numbers, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  ASSERT_OK(producer.Join());
}

BOBBIN_TEST(ChannelTest, ARangeForEndsWhenTheThreadIsToStopAndLeavesTheRest) {
  auto [sender, receiver] = MakeChannel<int>({.capacity = 8});
  for (int i = 0; i < 8; ++i) ASSERT_OK(sender.Send(i));
  std::atomic<int> received{0};
  VirtualThread consumer = Spawn([&received, receiver = receiver] {
    for (const int value : receiver) {
      EXPECT_EQ(value, received);
      if (++received == 3) AwaitTrue([] { return !CheckStop().ok(); });
    }
  });
  AwaitTrue([&] { return received == 3; });
  consumer.Cancel();
  ASSERT_OK(consumer.Join());
  EXPECT_EQ(received, 3);
  EXPECT_THAT(receiver.Receive(), IsOkAndHolds(3));
}

BOBBIN_TEST(ChannelTest, ARangeForHoldsNoValueWhileItWaits) {
  std::atomic<int> alive{0};
  auto [sender, receiver] = MakeChannel<Token>({.capacity = 1});
  ThreadProbe probe;
  VirtualThread consumer = Spawn([&probe, receiver = std::move(receiver)] {
    for (Token& token : receiver) {
      EXPECT_EQ(token.number(), 1);
      probe.Attach();
    }
  });
  ASSERT_OK(sender.Send(Token(1, &alive)));
  probe.AwaitParked();
  EXPECT_EQ(alive, 0);
  sender.Close();
  ASSERT_OK(consumer.Join());
}

// Every value arrives once, and those of one sender in their order, whatever the numbers.
BOBBIN_TEST(ChannelTest, RandomTrafficLosesAndDoublesNothing) {
  for (int shape = 0; shape < 6; ++shape) {
    const size_t capacity = random().Below(5);
    const int senders = static_cast<int>(random().Between(1, 4));
    const int receivers = static_cast<int>(random().Between(1, 4));
    constexpr int kValues = Rounds(600);
    std::atomic<int> alive{0};
    std::vector<std::vector<Token>> received(static_cast<size_t>(receivers));
    auto [sender, receiver] = MakeChannel<Token>({.capacity = capacity});
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < senders; ++i) {
      group.Spawn([i, &alive, sender = sender, own = random().Fork()]() mutable {
        for (int value = 0; value < kValues; ++value) {
          Token token(i * kValues + value, &alive);
          // Impatient at times: then it tries again, with the very same value.
          absl::Status sent = absl::UnavailableError("");
          while (!sent.ok()) {
            sent = own.OneIn(3)   ? sender.SendUntil(std::move(token),
                                                     Deadline::After(microseconds(own.Below(30))))
                   : own.OneIn(3) ? sender.TrySend(std::move(token))
                                  : sender.Send(std::move(token));
            if (absl::IsUnavailable(sent)) Yield();
          }
        }
      });
    }
    for (std::vector<Token>& own_received : received) {
      group.Spawn([&own_received, receiver = receiver, own = random().Fork()]() mutable {
        while (true) {
          absl::StatusOr<Token> value =
              own.OneIn(3)   ? receiver.ReceiveUntil(Deadline::After(microseconds(own.Below(30))))
              : own.OneIn(3) ? receiver.TryReceive()
                             : receiver.Receive();
          if (value.ok()) {
            own_received.push_back(*std::move(value));
          } else if (absl::IsOutOfRange(value.status())) {
            return;
          } else if (absl::IsUnavailable(value.status())) {
            Yield();
          }
        }
      });
    }
    sender = Sender<Token>();
    receiver = Receiver<Token>();
    ASSERT_OK(group.Wait());

    std::vector<int> seen(static_cast<size_t>(senders * kValues), 0);
    for (const std::vector<Token>& own_received : received) {
      std::vector<int> last(static_cast<size_t>(senders), -1);
      for (const Token& token : own_received) {
        ++seen[static_cast<size_t>(token.number())];
        int& before = last[static_cast<size_t>(token.number() / kValues)];
        ASSERT_LT(before, token.number());
        before = token.number();
      }
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_EQ(alive, senders * kValues);
    received.clear();
    EXPECT_EQ(alive, 0);
  }
}

// The value is with the receiver or with the sender, never with both or neither.
BOBBIN_TEST(ChannelTest, DeadlineAndHandOverRaceLosesNoValue) {
  auto [sender, receiver] = MakeChannel<Token>();
  const int rounds = Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    bool is_sent = false;
    VirtualThread producer =
        Spawn({.placement = Placement::kSpread}, [&is_sent, sender = sender, round] {
          Token token(round);
          is_sent = sender.SendUntil(std::move(token), Deadline::After(microseconds(100))).ok();
          EXPECT_EQ(token.number(), is_sent ? Token::kGone : round);
        });
    ASSERT_OK(SleepFor(microseconds(random().Between(50, 250))));
    const absl::StatusOr<Token> received =
        receiver.ReceiveUntil(Deadline::After(microseconds(random().Between(0, 60))));
    ASSERT_OK(producer.Join());
    ASSERT_EQ(received.ok(), is_sent);
    if (received.ok()) {
      ASSERT_EQ(received->number(), round);
    }
  }
}

BOBBIN_TEST(ChannelTest, CancelAndHandOverRaceLosesNoValue) {
  auto [sender, receiver] = MakeChannel<Token>();
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    bool has_received = false;
    ThreadProbe probe;
    VirtualThread consumer = Spawn({.placement = Placement::kSpread}, [&, receiver = receiver] {
      probe.Attach();
      const absl::StatusOr<Token> received = receiver.Receive();
      has_received = received.ok();
      if (has_received) {
        EXPECT_EQ(received->number(), round);
      }
    });
    probe.AwaitParked();
    VirtualThread canceller = Spawn({.placement = Placement::kSpread}, [&] { consumer.Cancel(); });
    const bool is_sent = sender.TrySend(Token(round)).ok();
    ASSERT_OK(canceller.Join());
    ASSERT_OK(consumer.Join());
    ASSERT_EQ(is_sent, has_received);
  }
}

// NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)

// A close is seen by everybody, whether before, while or after they begin to wait.
BOBBIN_TEST(ChannelTest, CloseRacesWithSendAndReceive) {
  const int rounds = Rounds(800);
  for (int round = 0; round < rounds; ++round) {
    auto [sender, receiver] = MakeChannel<int>({.capacity = static_cast<size_t>(round % 2)});
    std::atomic<int> sent{0};
    std::atomic<int> received{0};
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([sender = sender] { sender.Close(); });
    group.Spawn([&received, receiver = receiver] {
      while (receiver.Receive().ok()) ++received;
    });
    group.Spawn([&sent, sender = sender] {
      while (sender.Send(1).ok()) ++sent;
    });
    ASSERT_OK(group.Wait());
    ASSERT_EQ(sent, received);
  }
}

BOBBIN_TEST(ChannelTest, BothEndsMayGoAtTheSameInstant) {
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> alive{0};
    {
      auto [sender, receiver] = MakeChannel<Token>({.capacity = 2});
      ASSERT_OK(sender.Send(Token(1, &alive)));
      VirtualThread first = Spawn({.placement = Placement::kSpread},
                                  [sender = std::move(sender)] { static_cast<void>(sender); });
      VirtualThread second =
          Spawn({.placement = Placement::kSpread},
                [receiver = std::move(receiver)] { static_cast<void>(receiver); });
      ASSERT_OK(first.Join());
      ASSERT_OK(second.Join());
    }
    ASSERT_EQ(alive, 0);
  }
}

BOBBIN_FOREIGN_TEST(ChannelTest, VirtualAndForeignThreadsExchangeValues) {
  static constexpr int kValues = Rounds(2000);
  for (const size_t capacity : {size_t{0}, size_t{16}}) {
    for (const Kind producer : {Kind::kVirtual, Kind::kForeign}) {
      for (const Kind consumer : {Kind::kVirtual, Kind::kForeign}) {
        auto [sender, receiver] = MakeChannel<int>({.capacity = capacity});
        Crew crew(runtime());
        crew.Start(producer, [sender = std::move(sender)] {
          for (int i = 0; i < kValues; ++i) {
            EXPECT_OK(sender.SendUntil(int{i}, Deadline::After(std::chrono::minutes(1))));
          }
        });
        crew.Start(consumer, [receiver = std::move(receiver)] {
          int expected = 0;
          for (const int value : receiver) EXPECT_EQ(value, expected++);
          EXPECT_EQ(expected, kValues);
        });
      }
    }
  }
}

// What a ping-pong may cost: two parks a round, no sleep of the carrier and no allocation.
TEST(ChannelTest, APingPongOnOneCarrierIsTwoParksARound) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    constexpr uint64_t kRounds = 20'000;
    RuntimeStatistics before;
    RuntimeStatistics after;
    int64_t allocated = 0;
    int failures = 0;
    VirtualThread main = runtime.Spawn([&] {
      auto [ping, ping_out] = MakeChannel<int>();
      auto [pong, pong_out] = MakeChannel<int>();
      VirtualThread echo = Spawn([&failures, in = std::move(ping_out), out = std::move(pong)] {
        for (const int value : in) failures += out.Send(value).ok() ? 0 : 1;
      });
      EXPECT_OK(ping.Send(0));
      EXPECT_OK(pong_out.Receive());
      before = runtime.Statistics();
      allocated = allocations;
      for (uint64_t i = 0; i < kRounds; ++i) {
        failures += ping.Send(1).ok() ? 0 : 1;
        failures += pong_out.Receive().ok() ? 0 : 1;
      }
      allocated = allocations - allocated;
      after = runtime.Statistics();
      ping.Close();
      EXPECT_OK(echo.Join());
    });
    EXPECT_OK(main.Join());
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(allocated, 0);
    EXPECT_EQ(after.sleeps, before.sleeps);
    EXPECT_EQ(after.parks - before.parks, 2 * kRounds);
    EXPECT_EQ(after.switches - before.switches, 2 * kRounds);
  });
}

TEST(ChannelDeathTest, ACapacityBeyondTheLimitAborts) {
  EXPECT_DEATH(static_cast<void>(MakeChannel<char>({.capacity = kChannelCapacityMax + 1})),
               "a channel's capacity is beyond its limit");
}

TEST(ChannelDeathTest, UsingAnEndThatHoldsNoChannelAborts) {
  const Sender<int> sender;
  const Receiver<int> receiver;
  EXPECT_DEATH(static_cast<void>(sender.Send(1)), "a channel's end is used that holds no channel");
  EXPECT_DEATH(sender.Close(), "a channel's end is used that holds no channel");
  EXPECT_DEATH(static_cast<void>(receiver.TryReceive()),
               "a channel's end is used that holds no channel");
}

TEST(ChannelDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        const ChannelEnds<int> ends = MakeChannel<int>();
        const NoSuspendScope scope;
        static_cast<void>(ends.receiver.Receive());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
