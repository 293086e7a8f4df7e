// SPDX-License-Identifier: Apache-2.0
//
// Whether a deadlock is certain depends on every OS thread of the process, so each case is a
// process of its own: a child that ends with one of the codes below.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/deadlock.h>
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

// How a child ended that ran `body`, with its deadlocks reported by the exit code.
int CodeOfChild(const std::function<void(RuntimeOptions)>& body, uint64_t bystanders = 0) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    RuntimeOptions options{.carriers = 2};
    options.deadlock.bystanders = bystanders;
    options.deadlock.report = [](std::string_view) { _exit(kReported); };
    body(std::move(options));
    _exit(kEnded);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The thread sanitizer has an OS thread of its own.
constexpr uint64_t kSanitizerThreads = kUnderThreadSanitizer ? 1 : 0;

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

TEST(DeadlockTest, TwoMutexesLockedInOppositeOrdersAreReported) {
  EXPECT_EQ(CodeOfChild(LockInOppositeOrders, kSanitizerThreads), kReported);
}

TEST(DeadlockTest, AForgottenSenderIsReported) {
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  static auto& forgotten = *new Sender<int>();
                  static_cast<void>(bobbin::Run(
                      [&] {
                        auto [sender, receiver] = MakeChannel<int>();
                        forgotten = std::move(sender);
                        static_cast<void>(receiver.Receive());
                        return absl::OkStatus();
                      },
                      std::move(options)));
                },
                kSanitizerThreads),
            kReported);
}

// The platform pool's thread waits for the virtual thread that waits for it.
TEST(DeadlockTest, ACircleThroughAPlatformThreadIsReported) {
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  static_cast<void>(bobbin::Run(
                      [] {
                        Event never;
                        return RunBlocking([&] { return never.Wait(); });
                      },
                      std::move(options)));
                },
                kSanitizerThreads),
            kReported);
}

TEST(DeadlockTest, ItIsReportedAlsoIfTheLastOtherThreadEndsLater) {
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  Runtime runtime(std::move(options));
                  Event never;
                  VirtualThread parked = runtime.Spawn([&] { return never.Wait(); });
                  // Far longer than the runtime needs to come to rest.
                  std::this_thread::sleep_for(milliseconds(2500));
                  static_cast<void>(parked.Join());
                },
                kSanitizerThreads),
            kReported);
}

// Whoever still could set the event, there is no deadlock.
TEST(DeadlockTest, WhoCouldStillWakeSomebodyKeepsItFromBeingReported) {
  // A foreign thread that does something else.
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  Runtime runtime(std::move(options));
                  Event set_late;
                  VirtualThread parked = runtime.Spawn([&] { return set_late.Wait(); });
                  std::this_thread::sleep_for(seconds(3));
                  set_late.Set();
                  static_cast<void>(parked.Join());
                },
                kSanitizerThreads),
            kEnded);
  // A body on a platform thread.
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
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
                },
                kSanitizerThreads),
            kEnded);
  // A timer.
  EXPECT_EQ(
      CodeOfChild(
          [](RuntimeOptions options) {
            static_cast<void>(bobbin::Run([] { return SleepFor(seconds(3)); }, std::move(options)));
          },
          kSanitizerThreads),
      kEnded);
  // Another runtime, whose thread sleeps.
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  Runtime runtime(std::move(options));
                  Runtime other({.carriers = 1});
                  Event set_late;
                  VirtualThread parked = runtime.Spawn([&] { return set_late.Wait(); });
                  VirtualThread setter = other.Spawn([&] {
                    static_cast<void>(SleepFor(seconds(3)));
                    set_late.Set();
                  });
                  static_cast<void>(parked.Join());
                },
                kSanitizerThreads),
            kEnded);
}

TEST(DeadlockTest, AThreadThatIsDeclaredHarmlessDoesNotHideIt) {
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
                  std::thread logger([] {
                    while (true) std::this_thread::sleep_for(seconds(1));
                  });
                  LockInOppositeOrders(std::move(options));
                },
                kSanitizerThreads + 1),
            kReported);
}

// Foreign threads that are woken, and wake others, at every instant of each other's waits: the
// number of those that wait for good is right again and again.
TEST(DeadlockTest, WhoHasBeenWokenDoesNotCountAsWaiting) {
  EXPECT_EQ(CodeOfChild(
                [](RuntimeOptions options) {
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
                    for (uint64_t spin = random.Below(500); spin > 0; --spin)
                      __asm__ __volatile__("");
                    static_cast<void>(back.Acquire());
                  }
                  partner.join();
                  // The counts are back where they were: this is seen as what it is.
                  Event never;
                  VirtualThread parked = runtime.Spawn([&] { return never.Wait(); });
                  static_cast<void>(parked.Join());
                },
                kSanitizerThreads),
            kReported);
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

TEST(DeadlockTest, ItIsIgnoredIfAskedTo) {
  EXPECT_EQ(CodeOfChild(
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
                kSanitizerThreads + 1),
            kEnded);
}

}  // namespace
}  // namespace bobbin::test
