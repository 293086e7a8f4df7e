// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/load_ring.h"

#include <sys/mman.h>

#include <cerrno>

#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

constexpr unsigned kSubmissionEntries = 4096;
constexpr unsigned kCompletionEntries = 16384;

// The kernel completes a few dozen receives an enter; few buffers stay warm in the cache. A receive
// that finds none fails and is armed again.
constexpr unsigned kBufferCount = 256;
constexpr size_t kBufferRingBytes = kBufferCount * sizeof(io_uring_buf);

}  // namespace

LoadRing::~LoadRing() {
  if (has_ring_) io_uring_queue_exit(&ring_);
  if (buffers_ != nullptr) munmap(buffers_, kBufferRingBytes);
}

std::string LoadRing::Open(size_t buffer_bytes) {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  params.cq_entries = kCompletionEntries;
  int result = io_uring_queue_init_params(kSubmissionEntries, &ring_, &params);
  if (result < 0) return "io_uring: " + ErrorText(-result);
  has_ring_ = true;
  io_uring_register_ring_fd(&ring_);

  void* mapped =
      mmap(nullptr, kBufferRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return "io_uring buffers: " + ErrorText(errno);
  buffers_ = static_cast<io_uring_buf_ring*>(mapped);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(mapped);
  registration.ring_entries = kBufferCount;
  registration.bgid = kBufferGroup;
  result = io_uring_register_buf_ring(&ring_, &registration, 0);
  if (result < 0) return "io_uring buffers: " + ErrorText(-result);

  buffer_bytes_ = buffer_bytes;
  memory_.resize(kBufferCount * buffer_bytes);
  for (unsigned id = 0; id < kBufferCount; ++id) AddBuffer(id);
  PublishBuffers();
  return "";
}

io_uring_sqe* LoadRing::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    if (io_uring_submit(&ring_) < 0) io_uring_get_events(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

std::string LoadRing::Poll() {
  const unsigned flags = __atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED);
  const bool has_kernel_work = (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  if (!has_kernel_work && io_uring_sq_ready(&ring_) == 0) return "";
  return Entered(io_uring_submit_and_get_events(&ring_));
}

std::string LoadRing::Wait() {
  __kernel_timespec at_most{.tv_sec = 0, .tv_nsec = 5'000'000};
  io_uring_cqe* first = nullptr;
  return Entered(io_uring_submit_and_wait_timeout(&ring_, &first, 1, &at_most, nullptr));
}

std::string LoadRing::Entered(int result) {
  // The full completion queue and the lack of memory pass once completions have been taken.
  if (result >= 0 || result == -EINTR || result == -ETIME) return "";
  if (result == -EBUSY || result == -EAGAIN) {
    io_uring_get_events(&ring_);
    return "";
  }
  return "io_uring enter: " + ErrorText(-result);
}

std::span<const std::byte> LoadRing::Received(const io_uring_cqe& completion) const {
  const size_t id = completion.flags >> IORING_CQE_BUFFER_SHIFT;
  return {memory_.data() + id * buffer_bytes_, static_cast<size_t>(completion.res)};
}

void LoadRing::GiveBack(const io_uring_cqe& completion) {
  AddBuffer(completion.flags >> IORING_CQE_BUFFER_SHIFT);
}

void LoadRing::AddBuffer(unsigned id) {
  io_uring_buf_ring_add(buffers_, BufferAt(id), static_cast<unsigned>(buffer_bytes_),
                        static_cast<uint16_t>(id), io_uring_buf_ring_mask(kBufferCount),
                        static_cast<int>(buffers_added_++));
}

void LoadRing::PublishBuffers() {
  if (buffers_added_ == 0) return;
  io_uring_buf_ring_advance(buffers_, static_cast<int>(buffers_added_));
  buffers_added_ = 0;
}

}  // namespace bobbin::bench
