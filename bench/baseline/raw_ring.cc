// SPDX-License-Identifier: Apache-2.0

#include "bench/baseline/raw_ring.h"

#include <cerrno>

#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

// Not tuned: a full submission queue costs one early submit, see NextEntry.
constexpr unsigned kSubmissionEntries = 1024;

// Each connection may have a completion waiting here. With fewer entries than connections (8192 for
// 10,000) the kernel must allocate those that do not fit.
constexpr unsigned kCompletionEntries = 16384;

}  // namespace

RawRing::~RawRing() {
  if (has_ring_) io_uring_queue_exit(&ring_);
}

std::string RawRing::Open() {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  params.cq_entries = kCompletionEntries;
  const int result = io_uring_queue_init_params(kSubmissionEntries, &ring_, &params);
  if (result < 0) return "io_uring: " + ErrorText(-result);
  has_ring_ = true;
  io_uring_register_ring_fd(&ring_);  // Saves a descriptor look-up an enter; works without, too.
  return "";
}

io_uring_sqe* RawRing::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    if (io_uring_submit(&ring_) < 0) io_uring_get_events(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

// One enter submits what the last batch asked for, runs the kernel's deferred work, and waits only
// if that completed nothing. Looping while the ring's flags show TASKRUN or CQ_OVERFLOW is this
// same call: it does not sleep while either is set. A bigger batch is not to be had by entering
// again before submitting, because the kernel caps the work it runs per enter, not per submit.
std::string RawRing::Wait() {
  const int result = io_uring_submit_and_wait(&ring_, 1);
  if (result == -EBUSY || result == -EAGAIN) {
    io_uring_get_events(&ring_);  // Completions must be taken before more is accepted.
  } else if (result < 0 && result != -EINTR) {
    return "io_uring enter: " + ErrorText(-result);
  }
  return "";
}

}  // namespace bobbin::bench
