// SPDX-License-Identifier: Apache-2.0
//
// Everything at once, for a while: virtual threads, some of which migrate, platform and foreign
// threads share one small world and do to it, at random, whatever the library offers, under
// deadlines and requests to stop. After
// each round the books must balance: what was sent was received or is still there, what was
// acquired was released, who was spawned has ended.
//
// BOBBIN_SOAK_SECONDS says for how long, a few by default; BOBBIN_TEST_SEED repeats a run's
// choices, though not their timing.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/select.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/shared_mutex.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/load.h"
#include "tests/support/os_threads.h"
#include "tests/support/seed.h"

// The locks here are held over what an analysis cannot follow.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int64_t kPermits = 3;

// What the actors share.
class World {
 public:
  World()
      : channels_{MakeChannel<int64_t>({.capacity = 0}), MakeChannel<int64_t>({.capacity = 1}),
                  MakeChannel<int64_t>({.capacity = 16})} {}

  // Does `steps` things, of which all may fail because of a deadline or a request to stop.
  void Act(Random& random, int steps, int depth) {
    for (int step = 0; step < steps; ++step) ActOnce(random, depth);
  }

  // Gives all who wait for others a way out.
  void Stop() { stop_.Set(); }

  // REQUIRES: nobody acts any more.
  void CheckBooks() {
    for (const ChannelEnds<int64_t>& ends : channels_) {
      for (auto left = ends.receiver.TryReceive(); left.ok(); left = ends.receiver.TryReceive()) {
        received_ += *left;
      }
    }
    EXPECT_EQ(sent_, received_);
    EXPECT_EQ(permits_.available(), kPermits);
    EXPECT_EQ(inside_, 0);
    EXPECT_EQ(counted_, counted_with_lock_);
    EXPECT_EQ(born_, died_);
    EXPECT_TRUE(mutex_.try_lock());
    mutex_.unlock();
    EXPECT_TRUE(shared_.try_lock());
    shared_.unlock();
  }

 private:
  // Counts those who live: their bodies are destroyed whatever happens to them.
  class Life {
   public:
    explicit Life(World& world) : world_(&world) { ++world.born_; }
    Life(Life&& other) noexcept : world_(std::exchange(other.world_, nullptr)) {}
    Life& operator=(Life&&) = delete;
    ~Life() {
      if (world_ != nullptr) ++world_->died_;
    }

   private:
    World* world_;
  };

  void ActOnce(Random& random, int depth) {
    const DeadlineScope scope(microseconds(random.Between(0, 3000)));
    switch (random.Below(12)) {
      case 0:
        return Count(random);
      case 1:
        return Share(random);
      case 2:
        return Enter(random);
      case 3:
        return Send(random);
      case 4:
        return Receive(random);
      case 5:
        return AwaitChange(random);
      case 6:
        return ChooseOne(random);
      case 7:
        return SleepFor(microseconds(random.Between(0, 2000))).IgnoreError();
      case 8:
        return depth > 0 ? Start(random, depth - 1) : Yield();
      case 9:
        return depth > 0 ? StartGroup(random, depth - 1) : Yield();
      case 10:
        return random.OneIn(8) ? RunBlocking([] {}).IgnoreError() : Yield();
      default:
        return Persist(random);
    }
  }

  void Count(Random& random) {
    if (random.OneIn(2)) {
      mutex_.lock();
    } else if (!mutex_.LockUntil(Deadline::After(microseconds(random.Between(0, 500)))).ok()) {
      return;
    }
    ++counted_;
    if (random.OneIn(4)) Yield();
    ++counted_with_lock_;
    mutex_.unlock();
    if (random.OneIn(2)) changed_.NotifyAll();
  }

  void Share(Random& random) {
    if (random.OneIn(4)) {
      const ExclusiveLock lock(shared_);
      EXPECT_EQ(readers_, 0);
      if (random.OneIn(2)) Yield();
      EXPECT_EQ(readers_, 0);
    } else {
      const SharedLock lock(shared_);
      ++readers_;
      if (random.OneIn(2)) Yield();
      --readers_;
    }
  }

  void Enter(Random& random) {
    const int64_t permits = random.Between(1, kPermits);
    if (!permits_.Acquire(permits).ok()) return;
    EXPECT_LE(inside_ += permits, kPermits);
    if (random.OneIn(2)) SleepFor(microseconds(random.Between(0, 200))).IgnoreError();
    inside_ -= permits;
    permits_.Release(permits);
  }

  void Send(Random& random) {
    int64_t value = random.Between(1, 1000);
    const int64_t worth = value;
    if (channels_[random.Below(3)].sender.Send(std::move(value)).ok()) sent_ += worth;
  }

  void Receive(Random& random) {
    const absl::StatusOr<int64_t> value = channels_[random.Below(3)].receiver.Receive();
    if (value.ok()) received_ += *value;
  }

  void AwaitChange(Random& random) {
    mutex_.lock();
    const int64_t before = counted_;
    // Its mutex is held again whatever the answer is.
    while (counted_ == before && changed_.Wait(mutex_).ok()) {
      if (random.OneIn(8)) break;
    }
    mutex_.unlock();
  }

  void ChooseOne(Random& random) {
    const int64_t worth = random.Between(1, 1000);
    const auto chosen = Select(
        OnReceive(channels_[random.Below(3)].receiver, [&](int64_t value) { received_ += value; }),
        OnSend(channels_[random.Below(3)].sender, worth, [&] { sent_ += worth; }),
        OnAcquire(permits_, 1, [&] { permits_.Release(); }), OnEvent(stop_, [] {}));
    chosen.IgnoreError();
  }

  // A child whose handle is joined, cancelled, or given away.
  void Start(Random& random, int depth) {
    VirtualThread child = Spawn(
        {.placement = random.OneIn(2) ? Placement::kSpread : Placement::kHere,
         .migrates = random.OneIn(2)},
        [this, depth, own = random.Fork(), life = Life(*this)]() mutable { Act(own, 6, depth); });
    switch (random.Below(4)) {
      case 0:
        return std::move(child).Detach();
      case 1:
        child.Cancel();
        break;
      case 2:
        child.Join().IgnoreError();
        break;
      default:
        break;  // Its destructor cancels and joins.
    }
  }

  void StartGroup(Random& random, int depth) {
    TaskGroup group({.on_failure = random.OneIn(2) ? OnFailure::kCancelOthers : OnFailure::kCollect,
                     .placement = Placement::kSpread,
                     .live_max = random.OneIn(2) ? 2U : 100U});
    const int children = static_cast<int>(random.Between(0, 5));
    for (int i = 0; i < children; ++i) {
      group.Spawn({.migrates = random.OneIn(2)},
                  [this, depth, own = random.Fork(), life = Life(*this)]() mutable -> absl::Status {
                    Act(own, 3, depth);
                    return own.OneIn(4) ? absl::UnknownError("by lot") : absl::OkStatus();
                  });
    }
    if (random.OneIn(4)) group.Cancel();
    group.Wait().IgnoreError();
  }

  void Persist(Random& random) {
    const CancelShield shield;
    const DeadlineScope scope(microseconds(random.Between(0, 500)));
    if (random.OneIn(2)) {
      SleepFor(milliseconds(1)).IgnoreError();
    } else {
      stop_.Wait().IgnoreError();
    }
  }

  Mutex mutex_;
  Condition changed_;
  int64_t counted_ = 0;            // Guarded by mutex_.
  int64_t counted_with_lock_ = 0;  // Guarded by mutex_.
  SharedMutex shared_;
  std::atomic<int> readers_{0};
  Semaphore permits_{kPermits};
  std::atomic<int64_t> inside_{0};
  ChannelEnds<int64_t> channels_[3];
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> received_{0};
  std::atomic<int64_t> born_{0};
  std::atomic<int64_t> died_{0};
  Event stop_;
};

// BOBBIN_FOREIGN_TEST itself looks for virtual threads, timers and descriptors that are left over.
BOBBIN_FOREIGN_TEST(SoakTest, TheBooksBalanceAfterEachRound) {
  const Deadline end = Deadline::After(SoakTime(std::chrono::seconds(2)));
  int rounds = 0;
  do {
    World world;
    {
      Crew crew(runtime());
      for (int i = 0; i < 40; ++i) {
        const Kind kind = i < 2 ? Kind::kForeign : i < 3 ? Kind::kPlatform : Kind::kVirtual;
        crew.Start(kind, [&world, kind, own = random().Fork()]() mutable {
          // Foreign threads have no runtime to start children in.
          world.Act(own, 30, kind == Kind::kForeign ? 0 : 2);
        });
      }
    }
    world.Stop();
    EXPECT_OK(runtime().AwaitIdle());
    world.CheckBooks();
    ++rounds;
  } while (!end.HasPassed(MonotonicNow()) && !HasFailure());
  EXPECT_GT(rounds, 0);
}

// A shutdown in the middle of it: all end, and what they had is given back.
TEST(SoakTest, AShutdownAtAnyTimeEndsThemAll) {
  Random random(Seed());
  const Deadline end = Deadline::After(SoakTime(std::chrono::seconds(2)));
  do {
    World world;
    {
      Runtime runtime({.carriers = static_cast<int>(random.Between(1, 4))});
      for (int i = 0; i < 40; ++i) {
        runtime
            .Spawn({.placement = Placement::kSpread, .migrates = i % 2 == 0},
                   [&world, own = random.Fork()]() mutable {
                     while (CheckStop().ok()) world.Act(own, 5, 2);
                   })
            .Detach();
      }
      std::this_thread::sleep_for(microseconds(random.Between(0, 20'000)));
      EXPECT_OK(runtime.Shutdown());
    }
    world.CheckBooks();
  } while (!end.HasPassed(MonotonicNow()) && !HasFailure());
}

}  // namespace
}  // namespace bobbin::test
