// SPDX-License-Identifier: Apache-2.0
//
// RawRing: the io_uring of a raw echo server, set up like a carrier's, and the least that a loop
// around one needs.
//
//   Called from  the thread that opened it.

#ifndef BOBBIN_BENCH_BASELINE_RAW_RING_H_
#define BOBBIN_BENCH_BASELINE_RAW_RING_H_

#include <algorithm>
#include <string>

#include <liburing.h>

namespace bobbin::bench {

class RawRing {
 public:
  RawRing() = default;
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;
  ~RawRing();

  // Returns the error text, empty if it is ready.
  std::string Open();

  // Returns a free entry. Submits early where the queue is full; what completes meanwhile is seen
  // by a later Reap.
  io_uring_sqe* NextEntry();

  // Submits, and sleeps until something has completed. Returns the error text.
  std::string Wait();

  // Calls `on_completion(const io_uring_cqe&)` for the completions that are there now, up to a
  // turn's worth.
  template <typename OnCompletion>
  void Reap(OnCompletion&& on_completion) {
    const unsigned ready = std::min(io_uring_cq_ready(&ring_), kCompletionsPerTurn);
    const unsigned head = *ring_.cq.khead;
    for (unsigned i = 0; i < ready; ++i) {
      on_completion(ring_.cq.cqes[(head + i) & ring_.cq.ring_mask]);
    }
    io_uring_cq_advance(&ring_, ready);
  }

  io_uring& ring() { return ring_; }

 private:
  // What is handled before the next submit; the rest keeps its place in the queue. Without a bound,
  // connections whose peers answer within a turn go round among themselves while the others wait:
  // at 1000 connections that doubled the p99 (2 cores, 2026-11). 256 was slower than 64 at 10,000.
  static constexpr unsigned kCompletionsPerTurn = 64;

  bool has_ring_ = false;
  io_uring ring_{};
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_BASELINE_RAW_RING_H_
