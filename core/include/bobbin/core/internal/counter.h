// SPDX-License-Identifier: Apache-2.0
//
// Counter: a number that one OS thread writes and any may read.
//
//   Called from   set, add: the one writer. value: anyone.
//   Suspends      never.
//   Cost          a plain load and store.

#ifndef BOBBIN_CORE_INTERNAL_COUNTER_H_
#define BOBBIN_CORE_INTERNAL_COUNTER_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

class Counter {
 public:
  // Returns the new value.
  uint64_t add(uint64_t more) noexcept {
    const uint64_t sum = value_.load(std::memory_order_relaxed) + more;  // relaxed: own.
    set(sum);
    return sum;
  }
  // What was done before is visible to a reader of the new value: pairs with the acquire in
  // value().
  void set(uint64_t value) noexcept { value_.store(value, std::memory_order_release); }
  uint64_t value() const noexcept {
    return value_.load(std::memory_order_acquire);  // Pairs with the release in set().
  }

 private:
  Atomic<uint64_t> value_{0};  // Written by one OS thread; read by anyone.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_COUNTER_H_
