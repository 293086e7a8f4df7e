// SPDX-License-Identifier: Apache-2.0
//
// LoadRing: the load generator's io_uring, with a ring of buffers that receives take from. The
// client receives in multishot mode, which costs it less than the servers it measures, so that it
// is not itself the limit.
//
//   Called from  the thread that opened it.

#ifndef BOBBIN_BENCH_ECHO_LOAD_RING_H_
#define BOBBIN_BENCH_ECHO_LOAD_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <liburing.h>

namespace bobbin::bench {

class LoadRing {
 public:
  static constexpr uint16_t kBufferGroup = 1;

  LoadRing() = default;
  LoadRing(const LoadRing&) = delete;
  LoadRing& operator=(const LoadRing&) = delete;
  ~LoadRing();

  // Sets the ring up, with buffers of `buffer_bytes`. Returns the error text, empty if it is ready.
  std::string Open(size_t buffer_bytes);

  // Returns a free entry, zeroed by nobody: prepare all of it. Submits early where the queue is
  // full.
  io_uring_sqe* NextEntry();

  // Submits, and takes what has completed so far; never sleeps. Stays out of the kernel where there
  // is nothing to submit and nothing to take.
  std::string Poll();

  // Submits, and sleeps until something has completed or a few milliseconds have passed.
  std::string Wait();

  // Calls `on_completion(const io_uring_cqe&)` for each completion that is there now.
  template <typename OnCompletion>
  void Reap(OnCompletion&& on_completion) {
    const unsigned ready = io_uring_cq_ready(&ring_);
    const unsigned head = *ring_.cq.khead;
    for (unsigned i = 0; i < ready; ++i) {
      on_completion(ring_.cq.cqes[(head + i) & ring_.cq.ring_mask]);
    }
    io_uring_cq_advance(&ring_, ready);
    PublishBuffers();
  }

  // The bytes that a receive brought. Valid until GiveBack. REQUIRES: the completion has a buffer.
  std::span<const std::byte> Received(const io_uring_cqe& completion) const;

  // Returns the completion's buffer to the kernel, as of the end of this Reap.
  void GiveBack(const io_uring_cqe& completion);

 private:
  std::byte* BufferAt(unsigned id) { return memory_.data() + id * buffer_bytes_; }
  std::string Entered(int result);
  void AddBuffer(unsigned id);
  void PublishBuffers();

  io_uring ring_{};
  io_uring_buf_ring* buffers_ = nullptr;
  std::vector<std::byte> memory_;
  size_t buffer_bytes_ = 0;
  unsigned buffers_added_ = 0;
  bool has_ring_ = false;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_LOAD_RING_H_
