// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/biased_lock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/internal/asymmetric_fence.h>

#include "tests/support/bobbin_test.h"

namespace bobbin {
namespace {

using internal::BiasedLock;
using internal::HasHeavyFence;

// True if it is biased.
bool TryAsOwner(BiasedLock& lock) {
  if (!lock.TryLockAsOwner()) return false;
  lock.UnlockAsOwner();
  return true;
}

void UseAsOwner(BiasedLock& lock, int times) {
  for (int i = 0; i < times; ++i) {
    lock.LockAsOwner();
    lock.UnlockAsOwner();
  }
}

TEST(BiasedLockTest, ItsOwnerGetsItForItselfUntilSomebodyElseWantsIt) {
  if (!HasHeavyFence()) GTEST_SKIP() << "no heavy fence";
  BiasedLock lock;
  lock.AllowBias();
  EXPECT_FALSE(TryAsOwner(lock)) << "nobody has used it";
  for (int round = 0; round < 3; ++round) {
    UseAsOwner(lock, 1000);
    EXPECT_TRUE(TryAsOwner(lock));
    lock.Lock();
    lock.Unlock();
    EXPECT_FALSE(TryAsOwner(lock)) << "somebody else has used it";
    UseAsOwner(lock, 1);
    EXPECT_FALSE(TryAsOwner(lock)) << "it is early";
  }
}

TEST(BiasedLockTest, WithoutAnOwnerItStaysASpinLock) {
  BiasedLock lock;
  UseAsOwner(lock, 1000);
  EXPECT_FALSE(TryAsOwner(lock));
}

TEST(BiasedLockTest, OneAtATimeIsInside) {
  BiasedLock lock;
  if (HasHeavyFence()) lock.AllowBias();
  uint64_t count = 0;  // Guarded by the lock.
  std::atomic<bool> is_over = false;
  uint64_t own = 0;
  std::thread owner([&] {
    for (; !is_over; ++own) {
      lock.LockAsOwner();
      ++count;
      lock.UnlockAsOwner();
    }
  });
  const int rounds = test::Rounds(20'000);
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        lock.Lock();
        ++count;
        lock.Unlock();
        // Long enough for the owner to have it for itself again, now and then.
        for (int pause = 0; pause < (round + i) % 8 * 1000; ++pause) {
          std::atomic_signal_fence(std::memory_order_seq_cst);
        }
      }
    });
  }
  for (std::thread& other : others) other.join();
  is_over = true;
  owner.join();
  EXPECT_EQ(count, own + 2 * static_cast<uint64_t>(rounds));
}

}  // namespace
}  // namespace bobbin
