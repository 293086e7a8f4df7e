// SPDX-License-Identifier: Apache-2.0
//
// The bare switch of stacks that the runtime is built on: what no virtual thread can be faster than.

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

// Stacks side by side, as large as those of a runtime and staggered like them: tops that are a power of
// two apart would meet in the same sets of the cache. Without guards.
class Stacks {
 public:
  explicit Stacks(size_t count)
      : bytes_(count * kStackBytes),
        base_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    BOBBIN_CHECK(base_ != MAP_FAILED, "no address space for the stacks");
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { ::munmap(base_, bytes_); }

  // A context that begins with `entry` on stack number `index`.
  context::fcontext_t Prepare(size_t index, void (*entry)(context::transfer_t)) const {
    char* const end = static_cast<char*>(base_) + (index + 1) * kStackBytes;
    return context::make_fcontext(end - index % kOffsets * kOffsetBytes, kStackBytes / 2, entry);
  }

 private:
  static constexpr size_t kStackBytes = RuntimeOptions{}.stack_bytes;
  static constexpr size_t kOffsets = 16;
  static constexpr size_t kOffsetBytes = 64;

  const size_t bytes_;
  void* const base_;
};

// --- Two contexts. One iteration is one switch in one direction.

void SwitchBack(context::transfer_t from) {
  while (true) from = context::jump_fcontext(from.fctx, nullptr);
}

void RawFcontext(benchmark::State& state) {
  constexpr int kRounds = 1000;
  const Stacks stacks(1);
  context::fcontext_t other = stacks.Prepare(0, &SwitchBack);
  while (state.KeepRunningBatch(2 * kRounds)) {
    for (int i = 0; i < kRounds; ++i) other = context::jump_fcontext(other, nullptr).fctx;
  }
}
BENCHMARK(RawFcontext)->Name("Switch/RawFcontext");

// --- A ring of many, each of which switches to the next. One iteration is one switch.

struct Member {
  context::fcontext_t where = nullptr;
  Member* next = nullptr;
};

// A member learns where the one before it stands when that one switches to it.
void SwitchOn(context::transfer_t from) {
  Member& previous = *static_cast<Member*>(from.data);
  Member& self = *previous.next;
  Member& next = *self.next;
  while (true) {
    previous.where = from.fctx;
    from = context::jump_fcontext(next.where, &self);
  }
}

void RawRing(benchmark::State& state, size_t count) {
  const Stacks stacks(count);
  std::vector<Member> ring(count);
  for (size_t i = 0; i < count; ++i) {
    ring[i] = {stacks.Prepare(i, &SwitchOn), &ring[(i + 1) % count]};
  }
  // The benchmark's own stack is the first member's.
  Member& self = ring.front();
  Member& previous = ring.back();
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(count))) {
    previous.where = context::jump_fcontext(self.next->where, &self).fctx;
  }
}
void RawRing10000(benchmark::State& state) { RawRing(state, 10'000); }
BENCHMARK(RawRing10000)->Name("Switch/RawRing10000");

}  // namespace
}  // namespace bobbin::bench
