// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/shared_mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Who is inside, and that it is never a writer with somebody else.
class Room {
 public:
  void EnterAsReader() {
    EXPECT_EQ(writers_, 0);
    ++readers_;
  }
  void LeaveAsReader() {
    EXPECT_EQ(writers_, 0);
    --readers_;
  }
  void EnterAsWriter() {
    EXPECT_EQ(++writers_, 1);
    EXPECT_EQ(readers_, 0);
  }
  void LeaveAsWriter() {
    EXPECT_EQ(readers_, 0);
    EXPECT_EQ(--writers_, 0);
  }
  int readers() const { return readers_; }

 private:
  std::atomic<int> readers_{0};
  std::atomic<int> writers_{0};
};

BOBBIN_TEST(SharedMutexTest, ReadersAreInsideTogether) {
  SharedMutex mutex;
  Room room;
  Event leave;
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&] {
      const SharedLock lock(mutex);
      room.EnterAsReader();
      absl::Status left = leave.Wait();
      room.LeaveAsReader();
      return left;
    });
  }
  AwaitTrue([&] { return room.readers() == 4; });
  EXPECT_FALSE(mutex.try_lock());
  leave.Set();
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

BOBBIN_TEST(SharedMutexTest, AWriterIsAlone) {
  SharedMutex mutex;
  Room room;
  int64_t written = 0;
  const int rounds = Rounds(1000);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, own = random().Fork()]() mutable {
      for (int round = 0; round < rounds; ++round) {
        if (own.OneIn(3)) {
          const ExclusiveLock lock(mutex);
          room.EnterAsWriter();
          ++written;
          if (own.OneIn(8)) Yield();
          room.LeaveAsWriter();
        } else {
          const SharedLock lock(mutex);
          room.EnterAsReader();
          const int64_t seen = written;
          if (own.OneIn(8)) Yield();
          EXPECT_EQ(written, seen);
          room.LeaveAsReader();
        }
      }
    });
  }
  ASSERT_OK(group.Wait());
}

// Parked in this order behind a writer: two readers, a writer, a reader, a writer.
BOBBIN_TEST(SharedMutexTest, TheyGoInAsTheyCameAndNeighbouringReadersTogether) {
  SharedMutex mutex;
  Log<char> order;
  Room room;
  Event leave;
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe probes[5];
  const char kinds[] = {'r', 'r', 'w', 'r', 'w'};
  mutex.lock();
  for (int i = 0; i < 5; ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      if (kinds[i] == 'w') {
        const ExclusiveLock lock(mutex);
        order.Add('w');
      } else {
        const SharedLock lock(mutex);
        order.Add('r');
        room.EnterAsReader();
        EXPECT_OK(leave.Wait());
        room.LeaveAsReader();
      }
    });
    probes[i].AwaitParked();
  }
  mutex.unlock();
  AwaitTrue([&] { return room.readers() == 2; });
  // The third reader stands behind a writer.
  EXPECT_THAT(order.Take(), testing::ElementsAre('r', 'r'));
  EXPECT_TRUE(probes[2].IsParked());
  EXPECT_TRUE(probes[3].IsParked());
  leave.Set();
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre('w', 'r', 'w'));
}

BOBBIN_TEST(SharedMutexTest, AReaderDoesNotOvertakeAWriterThatWaits) {
  SharedMutex mutex;
  Log<char> order;
  ThreadProbe writer_probe;
  ThreadProbe reader_probe;
  mutex.lock_shared();
  VirtualThread writer = Spawn([&] {
    writer_probe.Attach();
    const ExclusiveLock lock(mutex);
    order.Add('w');
  });
  writer_probe.AwaitParked();
  EXPECT_FALSE(mutex.try_lock_shared());
  VirtualThread reader = Spawn([&] {
    reader_probe.Attach();
    const SharedLock lock(mutex);
    order.Add('r');
  });
  reader_probe.AwaitParked();
  mutex.unlock_shared();
  ASSERT_OK(writer.Join());
  ASSERT_OK(reader.Join());
  EXPECT_THAT(order.Take(), testing::ElementsAre('w', 'r'));
}

// With as many readers as there may be, a writer comes to its turn, and with as many writers, a
// reader.
BOBBIN_TEST(SharedMutexTest, NeitherReadersNorWritersStarve) {
  SharedMutex mutex;
  for (const bool many_read : {true, false}) {
    std::atomic<bool> is_over{false};
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 6; ++i) {
      group.Spawn([&] {
        while (!is_over) {
          if (many_read) {
            const SharedLock lock(mutex);
            Yield();  // The others come in meanwhile: somebody is always inside.
          } else {
            const ExclusiveLock lock(mutex);
            Yield();
          }
        }
      });
    }
    for (int i = 0; i < Rounds(100); ++i) {
      if (many_read) {
        const ExclusiveLock lock(mutex);
      } else {
        const SharedLock lock(mutex);
      }
    }
    is_over = true;
    ASSERT_OK(group.Wait());
  }
}

BOBBIN_TEST(SharedMutexTest, TryLockSucceedsOnlyWhereItNeedNotWait) {
  SharedMutex mutex;
  const NoSuspendScope scope;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_TRUE(mutex.IsHeldByCurrent());
  mutex.AssertHeld();
  mutex.AssertSharedHeld();
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock_shared());
  ASSERT_TRUE(mutex.try_lock_shared());
  EXPECT_FALSE(mutex.IsHeldByCurrent());
  mutex.AssertSharedHeld();
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock_shared();
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock_shared();
  EXPECT_OK(mutex.LockUntil(Deadline::Never()));
  mutex.unlock();
  EXPECT_OK(mutex.LockSharedUntil(Deadline::Never()));
  EXPECT_OK(mutex.LockSharedUntil(Deadline::Never()));
  mutex.unlock_shared();
  mutex.unlock_shared();
}

BOBBIN_TEST(SharedMutexTest, TheLocksOfTheStandardLibraryTakeIt) {
  SharedMutex mutex;
  {
    const std::shared_lock reader(mutex);
    const std::shared_lock other(mutex, std::try_to_lock);
    EXPECT_TRUE(other.owns_lock());
  }
  const std::unique_lock writer(mutex);
  EXPECT_TRUE(mutex.IsHeldByCurrent());
}

BOBBIN_TEST(SharedMutexTest, DeadlineWhileQueuedHoldsNothing) {
  SharedMutex mutex;
  mutex.lock();
  ASSERT_OK(Spawn([&] {
              EXPECT_THAT(mutex.LockUntil(Deadline::After(milliseconds(1))),
                          StatusIs(kDeadlineExceeded));
              EXPECT_THAT(mutex.LockSharedUntil(Deadline::After(milliseconds(1))),
                          StatusIs(kDeadlineExceeded));
              EXPECT_THAT(mutex.LockSharedUntil(Deadline::After(milliseconds(-1))),
                          StatusIs(kDeadlineExceeded));
              const DeadlineScope scope(milliseconds(1));
              EXPECT_THAT(mutex.LockSharedUntil(Deadline::Never()), StatusIs(kDeadlineExceeded));
              EXPECT_THAT(mutex.LockUntil(Deadline::Never()), StatusIs(kDeadlineExceeded));
            }).Join());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

BOBBIN_TEST(SharedMutexTest, CancelWhileQueuedHoldsNothing) {
  SharedMutex mutex;
  for (const bool is_reader : {true, false}) {
    ThreadProbe probe;
    mutex.lock();
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      return is_reader ? mutex.LockSharedUntil(Deadline::Never())
                       : mutex.LockUntil(Deadline::Never());
    });
    probe.AwaitParked();
    other.Cancel();
    EXPECT_THAT(other.Join(), StatusIs(kCancelled));
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

// Behind a writer that gives up there may be readers that need not wait any longer.
BOBBIN_TEST(SharedMutexTest, WhenAWriterGivesUpTheReadersBehindItGoIn) {
  SharedMutex mutex;
  ThreadProbe probes[5];
  mutex.lock_shared();
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    probes[0].Attach();
    return mutex.LockUntil(Deadline::Never());
  });
  probes[0].AwaitParked();
  Room room;
  Event leave;
  TaskGroup readers({.placement = Placement::kSpread});
  const auto read = [&](ThreadProbe& probe) {
    readers.Spawn([&] {
      probe.Attach();
      const SharedLock lock(mutex);
      room.EnterAsReader();
      absl::Status left = leave.Wait();
      room.LeaveAsReader();
      return left;
    });
    probe.AwaitParked();
  };
  read(probes[1]);
  read(probes[2]);
  VirtualThread other_writer = Spawn({.placement = Placement::kSpread}, [&] {
    probes[3].Attach();
    const ExclusiveLock lock(mutex);
    EXPECT_EQ(room.readers(), 0);
  });
  probes[3].AwaitParked();
  writer.Cancel();
  EXPECT_THAT(writer.Join(), StatusIs(kCancelled));
  AwaitTrue([&] { return room.readers() == 2; });
  EXPECT_TRUE(probes[3].IsParked());
  leave.Set();
  mutex.unlock_shared();
  ASSERT_OK(readers.Wait());
  ASSERT_OK(other_writer.Join());
}

BOBBIN_TEST(SharedMutexTest, AThreadThatIsToStopTakesAFreeOneButDoesNotWaitForIt) {
  SharedMutex free_mutex;
  SharedMutex held_mutex;
  held_mutex.lock();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(free_mutex.LockUntil(Deadline::Never()));
    free_mutex.unlock();
    EXPECT_OK(free_mutex.LockSharedUntil(Deadline::Never()));
    free_mutex.unlock_shared();
    EXPECT_THAT(held_mutex.LockUntil(Deadline::Never()), StatusIs(kCancelled));
    EXPECT_THAT(held_mutex.LockSharedUntil(Deadline::Never()), StatusIs(kCancelled));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  held_mutex.unlock();
}

BOBBIN_TEST(SharedMutexTest, LockIgnoresCancelAndDeadline) {
  for (const bool is_reader : {true, false}) {
    SharedMutex mutex;
    ThreadProbe probe;
    mutex.lock();
    VirtualThread other = Spawn([&] {
      const DeadlineScope scope(milliseconds(1));
      probe.Attach();
      if (is_reader) {
        const SharedLock lock(mutex);
      } else {
        const ExclusiveLock lock(mutex);
        EXPECT_TRUE(mutex.IsHeldByCurrent());
      }
    });
    probe.AwaitParked();
    other.Cancel();
    ASSERT_OK(SleepFor(milliseconds(3)));
    EXPECT_TRUE(probe.IsParked());
    mutex.unlock();
    ASSERT_OK(other.Join());
  }
}

// A waiter gives up just when its turn comes: whoever said OK is inside, and nobody else.
BOBBIN_TEST(SharedMutexTest, DeadlineAndUnlockRaceLeavesExactlyTheHoldersInside) {
  SharedMutex mutex;
  const int rounds = Rounds(300);
  for (int round = 0; round < rounds; ++round) {
    const bool is_reader = random().OneIn(2);
    mutex.lock();
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      const Deadline deadline = Deadline::After(microseconds(100));
      if (is_reader) {
        if (mutex.LockSharedUntil(deadline).ok()) mutex.unlock_shared();
      } else {
        const absl::Status status = mutex.LockUntil(deadline);
        EXPECT_EQ(status.ok(), mutex.IsHeldByCurrent());
        if (status.ok()) mutex.unlock();
      }
    });
    ASSERT_OK(SleepFor(microseconds(random().Between(50, 250))));
    mutex.unlock();
    ASSERT_OK(other.Join());
    ASSERT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

// A cancelled writer between readers, at any instant: the reader behind it is let in once, by
// whoever makes room.
BOBBIN_TEST(SharedMutexTest, CancelAndUnlockRaceLosesNoWaiter) {
  SharedMutex mutex;
  Room room;
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    ThreadProbe probe;
    mutex.lock_shared();
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      if (!mutex.LockUntil(Deadline::Never()).ok()) return;
      room.EnterAsWriter();
      room.LeaveAsWriter();
      mutex.unlock();
    });
    if (round % 4 != 0) probe.AwaitParked();
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      const SharedLock lock(mutex);
      room.EnterAsReader();
      room.LeaveAsReader();
    });
    if (round % 2 == 0) Yield();
    VirtualThread canceller = Spawn({.placement = Placement::kSpread}, [&] { writer.Cancel(); });
    Spin(random().Below(300));
    mutex.unlock_shared();
    ASSERT_OK(canceller.Join());
    ASSERT_OK(writer.Join());
    ASSERT_OK(reader.Join());
    ASSERT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

BOBBIN_TEST(SharedMutexTest, RandomUseKeepsWritersAlone) {
  SharedMutex mutex;
  Room room;
  const int rounds = Rounds(800);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, own = random().Fork()]() mutable {
      for (int round = 0; round < rounds; ++round) {
        const Deadline deadline =
            own.OneIn(2) ? Deadline::After(microseconds(own.Between(-5, 100))) : Deadline::Never();
        if (own.OneIn(3)) {
          if (own.OneIn(4) ? !mutex.try_lock() : !mutex.LockUntil(deadline).ok()) continue;
          room.EnterAsWriter();
          if (own.OneIn(3)) Yield();
          room.LeaveAsWriter();
          mutex.unlock();
        } else {
          if (own.OneIn(4) ? !mutex.try_lock_shared() : !mutex.LockSharedUntil(deadline).ok()) {
            continue;
          }
          room.EnterAsReader();
          if (own.OneIn(3)) Yield();
          room.LeaveAsReader();
          mutex.unlock_shared();
        }
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// An unlock does not touch what the next holder may destroy.
BOBBIN_FOREIGN_TEST(SharedMutexTest, ItsLastHolderMayDestroyIt) {
  struct Shared {
    SharedMutex mutex;
    std::atomic<int> users{4};
  };
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto* const shared = new Shared;
    const auto use = [shared](bool is_reader) {
      bool is_last;
      if (is_reader) {
        shared->mutex.lock_shared();
        is_last = shared->users.fetch_sub(1) == 1;
        // The last one waits until all others are out: they have counted themselves before.
        shared->mutex.unlock_shared();
      } else {
        shared->mutex.lock();
        is_last = shared->users.fetch_sub(1) == 1;
        shared->mutex.unlock();
      }
      if (!is_last) return;
      shared->mutex.lock();
      shared->mutex.unlock();
      delete shared;
    };
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) crew.Start(Kind::kVirtual, [use, i] { use(i % 2 == 0); });
    use(round % 2 == 0);
  }
}

// Threads of all kinds meet at one mutex.
BOBBIN_FOREIGN_TEST(SharedMutexTest, ThreadsOfAllKindsExcludeEachOther) {
  SharedMutex mutex;
  int64_t entries = 0;
  int writers = 0;
  const int rounds = Rounds(8000);
  {
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kForeign, Kind::kPlatform, Kind::kVirtual,
                            Kind::kForeign, Kind::kPlatform}) {
      const bool writes = writers < 3;
      if (writes) ++writers;
      crew.Start(kind, [&, writes] {
        int64_t seen = 0;
        for (int round = 0; round < rounds; ++round) {
          if (writes) {
            const ExclusiveLock lock(mutex);
            ++entries;
          } else {
            const SharedLock lock(mutex);
            EXPECT_GE(entries, seen);
            seen = entries;
          }
        }
      });
    }
  }
  EXPECT_EQ(entries, int64_t{writers} * rounds);
}

BOBBIN_FOREIGN_TEST(SharedMutexTest, AForeignThreadWaitsNoLongerThanItsDeadline) {
  SharedMutex mutex;
  ThreadProbe probe;
  VirtualThread holder = runtime().Spawn([&] {
    const ExclusiveLock lock(mutex);
    probe.Attach();
    return SleepFor(hours(1));
  });
  probe.AwaitParked();
  EXPECT_THAT(mutex.LockSharedUntil(Deadline::After(milliseconds(2))), StatusIs(kDeadlineExceeded));
  EXPECT_THAT(mutex.LockUntil(Deadline::After(milliseconds(2))), StatusIs(kDeadlineExceeded));
  holder.Cancel();
  EXPECT_THAT(holder.Join(), StatusIs(kCancelled));
  EXPECT_OK(mutex.LockSharedUntil(Deadline::Never()));
  mutex.unlock_shared();
}

TEST(SharedMutexDeathTest, LockingItWhileWritingAborts) {
  SharedMutex mutex;
  mutex.lock();
  EXPECT_DEATH(mutex.lock(), "a thread locks a shared mutex that it holds");
  EXPECT_DEATH(mutex.lock_shared(), "a thread locks a shared mutex that it holds");
  mutex.unlock();
}

TEST(SharedMutexDeathTest, UnlockingWhatIsNotHeldThatWayAborts) {
  SharedMutex mutex;
  EXPECT_DEATH(mutex.unlock(), "a thread unlocks a shared mutex that it does not hold exclusively");
  EXPECT_DEATH(mutex.unlock_shared(), "a thread unlocks a shared mutex that nobody holds shared");
  mutex.lock();
  EXPECT_DEATH(mutex.unlock_shared(), "a thread unlocks a shared mutex that nobody holds shared");
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        static_cast<void>(runtime.Spawn([&] { mutex.unlock(); }).Join());
      },
      "a thread unlocks a shared mutex that it does not hold exclusively");
  mutex.unlock();
  mutex.lock_shared();
  EXPECT_DEATH(mutex.unlock(), "a thread unlocks a shared mutex that it does not hold exclusively");
  mutex.unlock_shared();
}

TEST(SharedMutexDeathTest, AssertingWhatIsNotSoAborts) {
  SharedMutex mutex;
  EXPECT_DEATH(mutex.AssertHeld(), "the thread does not hold the shared mutex exclusively");
  EXPECT_DEATH(mutex.AssertSharedHeld(), "the thread does not hold the shared mutex");
  mutex.lock_shared();
  EXPECT_DEATH(mutex.AssertHeld(), "the thread does not hold the shared mutex exclusively");
  mutex.unlock_shared();
}

TEST(SharedMutexDeathTest, DestroyingItWhileItIsHeldAborts) {
  EXPECT_DEATH(
      {
        SharedMutex mutex;
        mutex.lock_shared();
      },
      "a shared mutex is destroyed while it is held");
}

TEST(SharedMutexDeathTest, WaitingForItWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        SharedMutex mutex;
        mutex.lock();
        static_cast<void>(runtime
                              .Spawn([&] {
                                const NoSuspendScope scope;
                                mutex.lock_shared();
                              })
                              .Join());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
