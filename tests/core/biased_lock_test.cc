// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/internal/asymmetric_fence.h>
#include <bobbin/core/internal/biased_lock.h>

#include "tests/support/bobbin_test.h"

namespace bobbin {
namespace {

using internal::BiasedLock;
using internal::HasHeavyFence;

// Calls `use` with the lock held. True if it was biased.
template <typename Use>
bool AsOwner(BiasedLock& lock, Use use) {
  if (lock.TryEnterAsOwner()) {
    use();
    lock.LeaveAsOwner();
    return true;
  }
  lock.LockAsOwner();
  use();
  lock.Unlock();
  return false;
}

// How many of so many times it was biased.
int UseAsOwner(BiasedLock& lock, int times) {
  int biased = 0;
  for (int i = 0; i < times; ++i) biased += AsOwner(lock, [] {}) ? 1 : 0;
  return biased;
}

TEST(BiasedLockTest, ItsOwnerGetsItForItselfUntilSomebodyElseWantsIt) {
  if (!HasHeavyFence()) GTEST_SKIP() << "no heavy fence";
  BiasedLock lock;
  lock.AllowBias();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(UseAsOwner(lock, 2), 0) << "it is early";
    EXPECT_GT(UseAsOwner(lock, 1000), 0);
    EXPECT_EQ(UseAsOwner(lock, 10), 10);
    lock.Lock();
    lock.Unlock();
  }
}

TEST(BiasedLockTest, WithoutAnOwnerItStaysASpinLock) {
  BiasedLock lock;
  EXPECT_EQ(UseAsOwner(lock, 1000), 0);
}

TEST(BiasedLockTest, OneAtATimeIsInside) {
  BiasedLock lock;
  if (HasHeavyFence()) lock.AllowBias();
  uint64_t count = 0;  // Guarded by the lock.
  std::atomic<bool> is_over = false;
  uint64_t own = 0;
  std::thread owner([&] {
    for (; !is_over; ++own) AsOwner(lock, [&count] { ++count; });
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
