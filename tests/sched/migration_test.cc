// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/local.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/sched/internal/current_poller.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/cross_over.h"
#include "tests/support/os_threads.h"
#include "tests/support/seed.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr SpawnOptions kMigrating = {.migrates = true};

// Runs `body` as a migrating thread of a runtime with two carriers.
template <typename F>
void OnMigratingThread(F body) {
  WithRuntime({.carriers = 2}, [&](Runtime& runtime) {
    EXPECT_OK(runtime.Spawn(kMigrating, [&] { body(runtime); }).Join());
  });
}

TEST(MigrationTest, AThreadThatIsReadyIsTakenFromACarrierInALongRun) {
  OnMigratingThread([](Runtime& runtime) {
    for (int round = 0; round < Rounds(300); ++round) CrossOver();
    EXPECT_GE(runtime.Statistics().migrated, static_cast<uint64_t>(Rounds(300)));
  });
}

// Nobody helps here: the monitor sees to it that one ready thread does not wait for long.
TEST(MigrationTest, WhoIsWokenByALongRunGoesOnElsewhere) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    EXPECT_OK(runtime
                  .Spawn([] {
                    Event go;
                    std::atomic<bool> is_waiting{false};
                    std::atomic<bool> has_gone_on{false};
                    VirtualThread other = Spawn(kMigrating, [&] {
                      is_waiting.store(true);
                      EXPECT_OK(go.Wait());
                      has_gone_on.store(true);
                    });
                    while (!is_waiting.load()) Yield();
                    go.Set();
                    while (!has_gone_on.load()) {
                    }
                    return other.Join();
                  })
                  .Join());
  });
}

TEST(MigrationTest, WhoYieldsBesideALongRunGoesOnElsewhere) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    EXPECT_OK(runtime
                  .Spawn([] {
                    std::atomic<bool> is_over{false};
                    std::atomic<pid_t> seen{0};
                    VirtualThread other = Spawn(kMigrating, [&] {
                      while (!is_over.load()) {
                        seen.store(gettid());
                        Yield();
                      }
                    });
                    while (seen.load() == 0) Yield();
                    while (seen.load() == gettid()) {
                    }
                    is_over.store(true);
                    return other.Join();
                  })
                  .Join());
  });
}

// Each is through only when all have been seen to run at the same time.
TEST(MigrationTest, ThreadsThatComputeAndYieldAreSpreadOverTheCarriers) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    EXPECT_OK(runtime
                  .Spawn(kMigrating,
                         [] {
                           std::atomic<int> inside{0};
                           std::atomic<bool> have_met{false};
                           TaskGroup group;
                           for (int i = 0; i < 2; ++i) {
                             group.Spawn(kMigrating, [&] {
                               // Started on one carrier, as a rule.
                               while (!have_met.load()) {
                                 ++inside;
                                 for (int spin = 0; spin < 10'000; ++spin) {
                                   if (inside.load() == 2) have_met.store(true);
                                 }
                                 --inside;
                                 Yield();
                               }
                             });
                           }
                           return group.Wait();
                         })
                  .Join());
  });
}

TEST(MigrationTest, OthersStayWhereTheyAre) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    std::atomic<bool> is_over{false};
    VirtualThread stays = runtime.Spawn([&] {
      const pid_t home = gettid();
      while (!is_over.load()) {
        EXPECT_EQ(gettid(), home);
        EXPECT_OK(SleepFor(microseconds(10)));
      }
    });
    VirtualThread moves = runtime.Spawn(kMigrating, [&] {
      for (int round = 0; round < 50; ++round) CrossOver();
    });
    EXPECT_OK(moves.Join());
    is_over.store(true);
    EXPECT_OK(stays.Join());
  });
}

// --- What is the thread's own goes with it.

TEST(MigrationTest, ItsCaughtExceptionGoesWithIt) {
  OnMigratingThread([](Runtime&) {
    std::atomic<bool> is_over{false};
    TaskGroup others;
    for (int i = 0; i < 2; ++i) {
      others.Spawn({.placement = Placement::kSpread}, [&] {
        while (!is_over.load()) {
          EXPECT_EQ(std::current_exception(), nullptr);
          try {
            throw 1;
          } catch (int) {
            EXPECT_OK(SleepFor(microseconds(10)));
          }
        }
      });
    }
    for (int round = 0; round < Rounds(200); ++round) {
      const std::string what = "round " + std::to_string(round);
      try {
        throw std::runtime_error(what);
      } catch (...) {
        CrossOver();
        try {
          throw;
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(error.what(), what);
        }
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    }
    is_over.store(true);
    EXPECT_OK(others.Wait());
  });
}

TEST(MigrationTest, ItsRoundingModeGoesWithItAndStaysWithNobodyElse) {
  OnMigratingThread([](Runtime&) {
    for (int round = 0; round < Rounds(200); ++round) {
      ASSERT_EQ(std::fegetround(), FE_TONEAREST);
      std::fesetround(FE_UPWARD);
      VirtualThread other = Spawn([] {
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
        Yield();
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      });
      CrossOver();
      EXPECT_OK(other.Join());
      EXPECT_EQ(std::fegetround(), FE_UPWARD);
      std::fesetround(FE_TONEAREST);
    }
  });
}

TEST(MigrationTest, ItsLocalsGoWithIt) {
  static VthreadLocal<int> local;
  OnMigratingThread([](Runtime&) {
    const uint64_t id = this_vthread::Id();
    for (int round = 0; round < Rounds(200); ++round) {
      local.Get() = round;
      CrossOver();
      EXPECT_EQ(local.Get(), round);
      EXPECT_EQ(this_vthread::Id(), id);
    }
  });
}

// --- What is the OS thread's own stays with that.

// Where a compiler would keep the address over a wait, if it saw the inside of this.
[[gnu::noinline]] int* AddressOfErrno() {
  __asm__ __volatile__("");
  return &errno;
}

TEST(MigrationTest, ErrnoIsThatOfTheCarrierAfterAWait) {
  OnMigratingThread([](Runtime&) {
    for (int round = 0; round < Rounds(200); ++round) {
      int* const here = AddressOfErrno();
      *here = EXDEV;
      CrossOver();
      int* const there = AddressOfErrno();
      EXPECT_NE(there, here);
      // A call of the system and the look at its error, on the same carrier.
      EXPECT_EQ(close(-1), -1);
      EXPECT_EQ(*there, EBADF);
    }
  });
}

// The library itself finds the carrier anew after each wait, in one function, however much of it is
// inlined.
TEST(MigrationTest, TheCarrierIsFoundAnewAfterEachWait) {
  OnMigratingThread([](Runtime&) {
    struct Seen {
      pid_t os_thread;
      const Poller* poller;
    };
    std::vector<Seen> seen;
    for (int round = 0; round < Rounds(500); ++round) {
      const Seen now{gettid(), internal::CurrentPoller()};
      bool is_known = false;
      for (const Seen& earlier : seen) {
        EXPECT_EQ(earlier.os_thread == now.os_thread, earlier.poller == now.poller);
        is_known |= earlier.os_thread == now.os_thread;
      }
      if (!is_known) seen.push_back(now);
      CrossOver();
      EXPECT_NE(gettid(), now.os_thread);
      EXPECT_OK(SleepFor(std::chrono::nanoseconds(1)));
    }
    EXPECT_EQ(seen.size(), 2u);
  });
}

TEST(MigrationTest, MemoryThatWasAllocatedOnOneCarrierIsFreedOnAnother) {
  OnMigratingThread([](Runtime&) {
    Random random(Seed());
    std::vector<char*> blocks(64, nullptr);
    std::vector<size_t> sizes(blocks.size(), 0);
    for (int round = 0; round < Rounds(300); ++round) {
      for (int step = 0; step < 32; ++step) {
        const size_t i = random.Below(blocks.size());
        if (blocks[i] != nullptr) {
          EXPECT_EQ(blocks[i][0], static_cast<char>(i));
          EXPECT_EQ(blocks[i][sizes[i] - 1], static_cast<char>(i));
        }
        std::free(blocks[i]);
        sizes[i] = static_cast<size_t>(random.Between(1, random.OneIn(8) ? 100'000 : 300));
        blocks[i] = static_cast<char*>(std::malloc(sizes[i]));
        std::memset(blocks[i], static_cast<int>(i), sizes[i]);
      }
      CrossOver();
    }
    for (char* const block : blocks) std::free(block);
  });
}

// --- Deadlines, cancels, locks.

TEST(MigrationTest, ALongDeadlineGoesWithIt) {
  OnMigratingThread([](Runtime& runtime) {
    const DeadlineScope outer(hours(2));
    for (int round = 0; round < Rounds(200); ++round) {
      const DeadlineScope inner(hours(1));
      CrossOver();
      // Armed there, and nowhere else.
      EXPECT_OK(SleepFor(microseconds(1)));
    }
    EXPECT_LE(runtime.Statistics().timers, 1u);
  });
}

TEST(MigrationTest, ADeadlineThatWasBegunElsewhereEndsAWait) {
  OnMigratingThread([](Runtime&) {
    Event never;
    for (int round = 0; round < Rounds(50); ++round) {
      const DeadlineScope outer(milliseconds(5));
      {
        const CancelShield hidden;
        CrossOver();
      }
      EXPECT_TRUE(absl::IsDeadlineExceeded(never.Wait()));
      EXPECT_TRUE(absl::IsDeadlineExceeded(SleepFor(hours(1))));
    }
  });
}

TEST(MigrationTest, ACancelFindsItWhereverItIs) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    Random random(Seed());
    for (int round = 0; round < Rounds(100); ++round) {
      Event never;
      Semaphore turns(0);
      std::atomic<bool> has_begun{false};
      VirtualThread moving = runtime.Spawn(kMigrating, [&] {
        has_begun.store(true);
        // Who finds a permit need not wait, and is not told to stop by that.
        while (turns.Acquire().ok() && CheckStop().ok()) Yield();
        EXPECT_TRUE(absl::IsCancelled(never.Wait()));
      });
      VirtualThread feeding = runtime.Spawn(kMigrating, [&] {
        while (CheckStop().ok()) {
          if (turns.available() == 0) turns.Release();
          Yield();
        }
      });
      while (!has_begun.load()) std::this_thread::yield();
      for (uint64_t spin = random.Below(3000); spin > 0; --spin) __asm__ __volatile__("");
      moving.Cancel();
      EXPECT_OK(moving.Join());
      feeding.Cancel();
      EXPECT_OK(feeding.Join());
    }
  });
}

// Wakes, deadlines and cancels from all sides, of threads that move all the time.
BOBBIN_FOREIGN_TEST(MigrationTest, NotifyDeadlineAndCancelRace) {
  for (int round = 0; round < Rounds(300); ++round) {
    Semaphore permits(0);
    std::atomic<int> acquired{0};
    std::vector<VirtualThread> waiting;
    for (int i = 0; i < 8; ++i) {
      waiting.push_back(
          runtime().Spawn({.placement = Placement::kSpread, .migrates = true},
                          [&, own = random().Fork()]() mutable {
                            for (int step = 0; step < 10; ++step) {
                              const DeadlineScope outer(microseconds(own.Between(0, 3000)));
                              const DeadlineScope inner(microseconds(own.Between(0, 3000)));
                              if (own.OneIn(3)) Yield();
                              if (permits.Acquire().ok()) ++acquired;
                            }
                          }));
    }
    int released = 0;
    for (VirtualThread& thread : waiting) {
      for (uint64_t spin = random().Below(20'000); spin > 0; --spin) __asm__ __volatile__("");
      const int64_t count = random().Between(1, 6);
      permits.Release(count);
      released += static_cast<int>(count);
      if (random().OneIn(2)) thread.Cancel();
    }
    for (VirtualThread& thread : waiting) EXPECT_OK(thread.Join());
    EXPECT_EQ(acquired.load() + permits.available(), released);
  }
}

TEST(MigrationTest, AMutexThatItHoldsGoesWithIt) {
  OnMigratingThread([](Runtime&) {
    Mutex mutex;
    int64_t inside = 0;
    TaskGroup others;
    std::atomic<bool> is_over{false};
    for (int i = 0; i < 3; ++i) {
      others.Spawn({.migrates = i == 0}, [&] {
        while (!is_over.load()) {
          {
            const MutexLock lock(mutex);
            ++inside;
            Yield();
            --inside;
          }
          EXPECT_OK(SleepFor(microseconds(10)));
        }
      });
    }
    for (int round = 0; round < Rounds(200); ++round) {
      const MutexLock lock(mutex);
      EXPECT_EQ(++inside, 1);
      CrossOver();
      EXPECT_TRUE(mutex.IsHeldByCurrent());
      EXPECT_EQ(--inside, 0);
    }
    is_over.store(true);
    EXPECT_OK(others.Wait());
  });
}

TEST(MigrationTest, ItComesBackFromThePlatformPool) {
  OnMigratingThread([](Runtime&) {
    for (int round = 0; round < Rounds(200); ++round) {
      const absl::StatusOr<int> answer = RunBlocking([round] { return round; });
      EXPECT_EQ(answer.value_or(-1), round);
      if (round % 4 == 0) CrossOver();
    }
  });
}

// --- Order.

// Of one kind or the other, nobody waits for more of the other than are ready at once.
TEST(MigrationTest, ReadyThreadsOfBothKindsTakeTurns) {
  // The other carrier is kept busy, so that all stay here.
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    std::atomic<bool> is_over{false};
    std::atomic<int> held{0};
    const auto hold = [&] {
      ++held;
      while (!is_over.load()) {
      }
    };
    VirtualThread driver = runtime.Spawn([&] {
      VirtualThread holder = Spawn(hold);
      while (held.load() == 0) {
      }
      constexpr int kTurns = 1000;
      std::vector<int> turns(10, 0);
      size_t begun = 0;
      TaskGroup group;
      for (size_t i = 0; i < turns.size(); ++i) {
        group.Spawn({.migrates = i % 2 == 0}, [&, i] {
          ++begun;
          while (begun < turns.size()) Yield();
          while (++turns[i] < kTurns) {
            Yield();
            EXPECT_LE(turns[i] - *std::min_element(turns.begin(), turns.end()), 3) << i;
          }
        });
      }
      EXPECT_OK(group.Wait());
      is_over.store(true);
      EXPECT_OK(holder.Join());
    });
    EXPECT_OK(driver.Join());
  });
}

// --- What is said about it.

TEST(MigrationTest, WithOneCarrierItIsAThreadLikeAnyOther) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    EXPECT_OK(runtime
                  .Spawn(kMigrating,
                         [] {
                           for (int i = 0; i < 100; ++i) Yield();
                         })
                  .Join());
    EXPECT_EQ(runtime.Statistics().migrated, 0u);
  });
}

TEST(MigrationTest, ADumpShowsItOnItsCarrierWithItsStack) {
  OnMigratingThread([](Runtime& runtime) {
    for (int round = 0; round < 10; ++round) {
      CrossOver();
      Event go;
      std::atomic<bool> is_waiting{false};
      VirtualThread other = Spawn({.name = "nomad", .migrates = true}, [&] {
        is_waiting.store(true);
        EXPECT_OK(go.Wait());
      });
      while (!is_waiting.load()) Yield();
      const std::string text = runtime.Dump();
      EXPECT_NE(text.find("\"nomad\""), std::string::npos) << text;
      go.Set();
      EXPECT_OK(other.Join());
    }
  });
}

// Whoever is on the way when all are cancelled is cancelled where it arrives.
TEST(MigrationTest, AShutdownFindsAllWhoAreOnTheWay) {
  Random random(Seed());
  for (int round = 0; round < Rounds(200); ++round) {
    Runtime runtime({.carriers = 4});
    for (int i = 0; i < 8; ++i) {
      runtime
          .Spawn(kMigrating,
                 [] {
                   while (CheckStop().ok()) {
                     Yield();
                     SleepFor(microseconds(1)).IgnoreError();
                   }
                 })
          .Detach();
    }
    std::this_thread::sleep_for(microseconds(random.Between(0, 500)));
    ASSERT_OK(runtime.Shutdown());
  }
}

}  // namespace
}  // namespace bobbin::test
