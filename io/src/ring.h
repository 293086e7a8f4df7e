// SPDX-License-Identifier: Apache-2.0
//
// Ring: one io_uring, of one OS thread.
//
// liburing sets it up and maps it; entries are prepared with liburing's functions. Publishing,
// entering and taking completions are done here, because one enter is to submit, run the kernel's
// deferred work, wait and return, with flags that liburing 2.3 does not know.
//
// The kernel runs deferred work (DEFER_TASKRUN) only inside an enter that asks for completions, and
// only on the thread that owns the ring. So between two enters nothing changes under the owner's
// feet: the kernel writes to no buffer and posts no completion. Submitting without asking (Submit)
// executes the new entries, and may post theirs.
//
//   Called from   the OS thread that opened it; `fd` and the destructor by anyone.
//   Suspends      Wait blocks the OS thread.
//   Cost          an entry: a few stores. An enter: one system call.

#ifndef BOBBIN_IO_SRC_RING_H_
#define BOBBIN_IO_SRC_RING_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include <liburing.h>

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/counter.h>

namespace bobbin::io::internal {

class Ring {
 public:
  struct Entries {
    uint32_t submission;
    uint32_t completion;
  };

  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Sets it up, smaller than asked for if the kernel has no memory for that. A failure says what to
  // do about it. REQUIRES: not open.
  absl::Status Open(Entries wanted);
  // Gives up what belongs to the calling thread; nothing is submitted or taken after that. The
  // descriptor stays good, for those who may still send a message to it.
  void Disown();

  int fd() const { return ring_.ring_fd; }
  Entries entries() const { return {submission_mask_ + 1, ring_.cq.ring_entries}; }

  // An entry to prepare, or null: the queue is full and the kernel does not take more before
  // completions have been taken. Prepared entries are submitted by the next enter.
  io_uring_sqe* NextEntry() {
    if (__builtin_expect(prepared() > submission_mask_, 0) && !MakeRoom()) return nullptr;
    return &entries_[submission_tail_++ & submission_mask_];
  }
  // How many entries wait to be submitted.
  uint32_t prepared() const { return submission_tail_ - submission_head_; }
  // Whether the kernel has completions to post once it is entered.
  bool has_deferred() const {
    // relaxed: a hint; what it hints at is taken behind an enter.
    return (std::atomic_ref(*flags_).load(std::memory_order_relaxed) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }

  // Enters because the queue was full; enters that found completions for which there was no room;
  // and sleeps for want of memory. Called from: any thread.
  uint64_t early_submits() const { return early_submits_.value(); }
  uint64_t overflows() const { return overflows_.value(); }
  uint64_t memory_pauses() const { return memory_pauses_.value(); }

  // Submits; posts no completions but those of the submitted.
  void Submit();
  // Submits and runs deferred work, without waiting.
  void Collect();
  // The same, and sleeps until there is a completion to take, or `until`. May return earlier.
  void Wait(Deadline until);

  // Lets receives take their buffers from a queue of so many entries: false if this kernel does not
  // do that.
  bool RegisterBuffers(void* entries, uint32_t count, uint16_t group);
  void UnregisterBuffers(uint16_t group);

  // How many completions can be taken; the oldest is number 0. They stay until Consume.
  uint32_t completions() const {
    // Pairs with the kernel's release of the tail.
    return std::atomic_ref(*completion_tail_).load(std::memory_order_acquire) - completion_head_;
  }
  const io_uring_cqe& completion(uint32_t number) const {
    return completions_[(completion_head_ + number) & completion_mask_];
  }
  // Gives the places of the `count` oldest back to the kernel.
  void Consume(uint32_t count) {
    completion_head_ += count;
    // Pairs with the kernel's acquire: the places may be used anew.
    std::atomic_ref(*kernel_completion_head_).store(completion_head_, std::memory_order_release);
  }

 private:
  absl::Status SetUp(Entries wanted);
  bool MakeRoom();
  // Whether it may be entered, and with what.
  absl::Status TryEnter();
  int Enter(uint32_t wanted, uint32_t flags, const void* argument, size_t argument_bytes);

  // Submission: what the owner has, and what it shares with the kernel.
  io_uring_sqe* entries_ = nullptr;
  uint32_t submission_mask_ = 0;
  uint32_t submission_tail_ = 0;
  uint32_t submission_head_ = 0;  // As of the last enter: only an enter moves it.
  uint32_t* kernel_submission_tail_ = nullptr;
  uint32_t* kernel_submission_head_ = nullptr;
  uint32_t* flags_ = nullptr;

  // Completion.
  const io_uring_cqe* completions_ = nullptr;
  uint32_t completion_mask_ = 0;
  uint32_t completion_head_ = 0;
  uint32_t* completion_tail_ = nullptr;
  uint32_t* kernel_completion_head_ = nullptr;

  // How to enter.
  int enter_fd_ = -1;
  uint32_t enter_flags_ = 0;  // For every enter.
  uint32_t wait_flags_ = 0;   // For those that sleep.
  bool has_absolute_timer_ = false;

  // Written here, read by everyone.
  bobbin::internal::Counter early_submits_;
  bobbin::internal::Counter overflows_;
  bobbin::internal::Counter memory_pauses_;

  bool is_open_ = false;
  io_uring ring_{};
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RING_H_
