// SPDX-License-Identifier: Apache-2.0
//
// Whether a deadlock is certain depends on every OS thread of the process, so each case is a
// process of its own: a child that ends with one of the codes below.

#include <unistd.h>

#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/deadlock.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/random.h"
#include "tests/support/sanitizers.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kReported = 42;  // A deadlock was reported.
constexpr int kEnded = 43;     // The body has returned.

// The thread sanitizer has an OS thread of its own.
constexpr uint64_t kSanitizerThreads = kUnderThreadSanitizer ? 1 : 0;

[[noreturn]] void RunAndExit(const std::function<void(RuntimeOptions)>& body, uint64_t bystanders) {
  RuntimeOptions options{.carriers = 2};
  options.deadlock.bystanders = kSanitizerThreads + bystanders;
  options.deadlock.report = [](std::string_view) { _exit(kReported); };
  body(std::move(options));
  _exit(kEnded);
}

// Runs `body` in a process of its own, which must end with `code`.
void ExpectCode(int code, const std::function<void(RuntimeOptions)>& body,
                uint64_t bystanders = 0) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(RunAndExit(body, bystanders), testing::ExitedWithCode(code), "");
}

void LockInOppositeOrders(RuntimeOptions options) {
  Runtime runtime(std::move(options));
  Mutex left;
  Mutex right;
  WaitGroup both_hold_one;
  both_hold_one.Add(2);
  auto lock_both = [&](Mutex& first, Mutex& second) {
    const MutexLock hold_first(first);
    both_hold_one.Done();
    static_cast<void>(both_hold_one.Wait());
    const MutexLock hold_second(second);
  };
  VirtualThread one = runtime.Spawn({.name = "one"}, [&] { lock_both(left, right); });
  VirtualThread two = runtime.Spawn({.name = "two"}, [&] { lock_both(right, left); });
  static_cast<void>(one.Join());
}

TEST(DeadlockDeathTest, TwoMutexesLockedInOppositeOrdersAreReported) {
  ExpectCode(kReported, LockInOppositeOrders);
}

TEST(DeadlockDeathTest, AForgottenSenderIsReported) {
  ExpectCode(kReported, [](RuntimeOptions options) {
    static auto& forgotten = *new Sender<int>();
    static_cast<void>(bobbin::Run(
        [&] {
          auto [sender, receiver] = MakeChannel<int>();
          forgotten = std::move(sender);
          static_cast<void>(receiver.Receive());
          return absl::OkStatus();
        },
        std::move(options)));
  });
}

// The platform pool's thread waits for the virtual thread that waits for it.
TEST(DeadlockDeathTest, ACircleThroughAPlatformThreadIsReported) {
  ExpectCode(kReported, [](RuntimeOptions options) {
    static_cast<void>(bobbin::Run(
        [] {
          Event never;
          return RunBlocking([&] { return never.Wait(); });
        },
        std::move(options)));
  });
}

// A body waits for one that is queued behind it in the same pool, which has no other thread.
TEST(DeadlockDeathTest, APoolThatWaitsForItselfIsReported) {
  ExpectCode(kReported, [](RuntimeOptions options) {
    static_cast<void>(bobbin::Run(
        []() -> absl::Status {
          PlatformPool pool({.threads = 1, .queue_max = 1});
          return pool.RunBlocking([&] {
            Event has_run;
            BOBBIN_CHECK(pool.Submit([&] { has_run.Set(); }).ok(), "there is room for one");
            BOBBIN_CHECK(absl::IsResourceExhausted(pool.Submit([] {})), "and for no more");
            static_cast<void>(has_run.Wait());
          });
        },
        std::move(options)));
  });
}

TEST(DeadlockDeathTest, ItIsReportedAlsoIfTheLastOtherThreadEndsLater) {
  ExpectCode(kReported, [](RuntimeOptions options) {
    Runtime runtime(std::move(options));
    Event never;
    VirtualThread parked = runtime.Spawn([&] { return never.Wait(); });
    // Far longer than the runtime needs to come to rest.
    std::this_thread::sleep_for(milliseconds(2500));
    static_cast<void>(parked.Join());
  });
}

// Whoever still could set the event, there is no deadlock.
TEST(DeadlockDeathTest, WhoCouldStillWakeSomebodyKeepsItFromBeingReported) {
  // A foreign thread that does something else.
  ExpectCode(kEnded, [](RuntimeOptions options) {
    Runtime runtime(std::move(options));
    Event set_late;
    VirtualThread parked = runtime.Spawn([&] { return set_late.Wait(); });
    std::this_thread::sleep_for(seconds(3));
    set_late.Set();
    static_cast<void>(parked.Join());
  });
  // A body on a platform thread.
  ExpectCode(kEnded, [](RuntimeOptions options) {
    static_cast<void>(bobbin::Run(
        [] {
          Event set_late;
          PlatformPool pool({.threads = 1});
          static_cast<void>(pool.Submit([&] {
            std::this_thread::sleep_for(seconds(3));
            set_late.Set();
          }));
          return set_late.Wait();
        },
        std::move(options)));
  });
  // A timer.
  ExpectCode(kEnded, [](RuntimeOptions options) {
    static_cast<void>(bobbin::Run([] { return SleepFor(seconds(3)); }, std::move(options)));
  });
  // Another runtime, whose thread sleeps.
  ExpectCode(kEnded, [](RuntimeOptions options) {
    Runtime runtime(std::move(options));
    Runtime other({.carriers = 1});
    Event set_late;
    VirtualThread parked = runtime.Spawn([&] { return set_late.Wait(); });
    VirtualThread setter = other.Spawn([&] {
      static_cast<void>(SleepFor(seconds(3)));
      set_late.Set();
    });
    static_cast<void>(parked.Join());
  });
}

TEST(DeadlockDeathTest, AThreadThatIsDeclaredHarmlessDoesNotHideIt) {
  ExpectCode(
      kReported,
      [](RuntimeOptions options) {
        std::thread logger([] {
          while (true) std::this_thread::sleep_for(seconds(1));
        });
        LockInOppositeOrders(std::move(options));
      },
      1);
}

// Foreign threads that are woken, and wake others, at every instant of each other's waits: the
// number of those that wait for good is right again and again.
TEST(DeadlockDeathTest, WhoHasBeenWokenDoesNotCountAsWaiting) {
  ExpectCode(kReported, [](RuntimeOptions options) {
    Runtime runtime(std::move(options));
    const int rounds = Rounds(20'000);
    Semaphore there(0);
    Semaphore back(0);
    std::thread partner([&] {
      for (int i = 0; i < rounds; ++i) {
        static_cast<void>(there.Acquire());
        back.Release();
      }
    });
    Random random(1);
    for (int i = 0; i < rounds; ++i) {
      there.Release();
      for (uint64_t spin = random.Below(500); spin > 0; --spin) __asm__ __volatile__("");
      static_cast<void>(back.Acquire());
    }
    partner.join();
    // The counts are back where they were: this is seen as what it is.
    Event never;
    VirtualThread parked = runtime.Spawn([&] { return never.Wait(); });
    static_cast<void>(parked.Join());
  });
}

void AbortAtADeadlock() {
  RuntimeOptions options{.carriers = 1};
  options.deadlock.action = OnDeadlock::kAbort;
  options.deadlock.bystanders = kSanitizerThreads;
  LockInOppositeOrders(std::move(options));
}

TEST(DeadlockDeathTest, ItAbortsIfAskedToAndNamesWhoIsParked) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(AbortAtADeadlock(), "deadlock: 2 virtual threads are parked");
  EXPECT_DEATH(AbortAtADeadlock(), "\"one\"");
}

TEST(DeadlockDeathTest, ItIsIgnoredIfAskedTo) {
  ExpectCode(
      kEnded,
      [](RuntimeOptions options) {
        options.deadlock.action = OnDeadlock::kIgnore;
        Runtime runtime(std::move(options));
        Event never;
        VirtualThread parked = runtime.Spawn([&] { return never.Wait(); });
        std::thread ender([] {
          std::this_thread::sleep_for(seconds(3));
          _exit(kEnded);
        });
        static_cast<void>(parked.Join());
      },
      1);
}

}  // namespace
}  // namespace bobbin::test
