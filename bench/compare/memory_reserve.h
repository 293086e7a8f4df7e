// SPDX-License-Identifier: Apache-2.0
//
// MemoryReserve: memory that is kept to be given back when there is no more, so that a program that
// has started as many threads as fit can still end in order.
//
// Where `new` finds no memory, the reserve is given back, and it tries again; from then on IsSpent.
//
//   Called from   any thread; one at a time in a process.
//   Suspends      never.

#ifndef BOBBIN_BENCH_COMPARE_MEMORY_RESERVE_H_
#define BOBBIN_BENCH_COMPARE_MEMORY_RESERVE_H_

namespace bobbin::compare {

class MemoryReserve {
 public:
  MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;
  ~MemoryReserve();

  bool IsSpent() const;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_MEMORY_RESERVE_H_
