// SPDX-License-Identifier: Apache-2.0
//
// Rally: two threads that wake each other in turns, over two batons. One iteration is one round
// trip.
//
// A baton is anything with Signal and Await, of which each Await takes one Signal:
//
//   void Signal();  // Called from one thread.
//   void Await();   // Called from one other thread.
//
// Whatever is passed on this way - a bare wake, a semaphore's permit, a value - the loop around it
// is the same, so that the figures differ only by the batons.

#ifndef BOBBIN_BENCH_SUPPORT_RALLY_H_
#define BOBBIN_BENCH_SUPPORT_RALLY_H_

#include "benchmark/benchmark.h"

#include <bobbin/core/internal/thread.h>

namespace bobbin::bench {

template <typename Baton>
class Rally {
 public:
  // The other thread's part.
  void Answer() {
    while (true) {
      there_.Await();
      if (is_over_) return;
      here_.Signal();
    }
  }

  // The measuring thread's part. Answer returns soon after it.
  void Measure(benchmark::State& state) {
    while (state.KeepRunningBatch(kRounds)) {
      for (int i = 0; i < kRounds; ++i) {
        there_.Signal();
        here_.Await();
      }
    }
    is_over_ = true;
    there_.Signal();
  }

 private:
  static constexpr int kRounds = 100;

  // Each has cache lines of its own.
  alignas(internal::kCacheLineBytes) Baton here_;
  alignas(internal::kCacheLineBytes) Baton there_;
  bool is_over_ = false;  // Handed over by the last signal.
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_SUPPORT_RALLY_H_
