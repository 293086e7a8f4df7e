// SPDX-License-Identifier: Apache-2.0
//
// The bare switch of stacks that the runtime is built on: what no virtual thread can be faster
// than.

#include <sys/mman.h>

#include <cstddef>
#include <vector>

#include "benchmark/benchmark.h"
#include "boost/context/detail/fcontext.hpp"

#include <bobbin/core/check.h>
#include <bobbin/sched/runtime.h>

namespace bobbin::bench {
namespace {

namespace context = boost::context::detail;

// Stacks side by side, as large as those of a runtime and staggered like them: tops that are a
// power of two apart would meet in the same sets of the cache. Without guards.
class Stacks {
 public:
  explicit Stacks(size_t count)
      : bytes_(count * stack_bytes_),
        base_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    BOBBIN_CHECK(base_ != MAP_FAILED, "no address space for the stacks");
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { ::munmap(base_, bytes_); }

  // A context that begins with `entry` on stack number `index`.
  context::fcontext_t Prepare(size_t index, void (*entry)(context::transfer_t)) const {
    char* const end = static_cast<char*>(base_) + (index + 1) * stack_bytes_;
    return context::make_fcontext(end - index % kOffsets * kOffsetBytes, stack_bytes_ / 2, entry);
  }

 private:
  static constexpr size_t kOffsets = 16;
  static constexpr size_t kOffsetBytes = 64;

  const size_t stack_bytes_ = RuntimeOptions{}.stack_bytes;
  const size_t bytes_;
  void* const base_;
};

// --- Two contexts. One iteration is one switch in one direction.

void SwitchBack(context::transfer_t from) {
  while (true) from = context::jump_fcontext(from.fctx, nullptr);
}

void RawFcontext(benchmark::State& state) {
  constexpr benchmark::IterationCount kRounds = 1000;
  const Stacks stacks(1);
  context::fcontext_t other = stacks.Prepare(0, &SwitchBack);
  while (state.KeepRunningBatch(2 * kRounds)) {
    for (auto i = kRounds; i > 0; --i) other = context::jump_fcontext(other, nullptr).fctx;
  }
}
BENCHMARK(RawFcontext)->Name("Switch/RawFcontext");

// --- A ring of many, each of which switches to the next. One iteration is one switch.

struct Member {
  context::fcontext_t where = nullptr;
  Member* next = nullptr;
};

enum class Fetching { kNone, kAhead };

// A member learns where the one before it stands when that one switches to it. To fetch ahead is to
// ask for the stack of the next but one, as the runtime does: otherwise most of the time is spent
// waiting for memory.
template <Fetching fetching>
void SwitchOn(context::transfer_t from) {
  Member& previous = *static_cast<Member*>(from.data);
  Member& self = *previous.next;
  Member& next = *self.next;
  while (true) {
    previous.where = from.fctx;
    if constexpr (fetching == Fetching::kAhead) __builtin_prefetch(next.next->where);
    from = context::jump_fcontext(next.where, &self);
  }
}

template <Fetching fetching>
void RawRing(benchmark::State& state) {
  constexpr size_t kMembers = 10'000;
  const Stacks stacks(kMembers);
  std::vector<Member> ring(kMembers);
  for (size_t i = 0; i < kMembers; ++i) {
    ring[i] = {stacks.Prepare(i, &SwitchOn<fetching>), &ring[(i + 1) % kMembers]};
  }
  // The benchmark's own stack is the first member's.
  Member& self = ring.front();
  Member& previous = ring.back();
  while (state.KeepRunningBatch(kMembers)) {
    previous.where = context::jump_fcontext(self.next->where, &self).fctx;
  }
}
BENCHMARK(RawRing<Fetching::kNone>)->Name("Switch/RawRing10000");
BENCHMARK(RawRing<Fetching::kAhead>)->Name("Switch/RawRing10000Ahead");

}  // namespace
}  // namespace bobbin::bench
