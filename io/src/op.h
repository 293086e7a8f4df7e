// SPDX-License-Identifier: Apache-2.0
//
// Op: the record of one operation in the kernel's hands.
//
// Two kinds. A ParkedOp lies on the stack of the virtual thread that waits for it. An AcceptOp lies
// on the heap, in its listener, and brings one connection after the other.
//
// What the kernel is given to find a record again is one number: the record's address, whose low
// bits and top bits are free, with a tag below and the operation's generation above. The generation
// tells an operation from the one that had the same address before it.
//
// Stages
//
//   kIdle        the kernel does not know it
//   kDeferred    started, but the queue of submissions had no room; the poller holds it
//   kInFlight    prepared: the kernel may write to its buffer until the last completion has been
//                taken
//
// Why the kernel never writes to a stack that has been left
//
//   1. The kernel uses the addresses in an operation while it executes an entry, and while it runs
//      work that it deferred: both only inside an enter of the ring's own OS thread, that is not
//      while a virtual thread runs. (It may hand an operation to a thread of its own; point 2 holds
//      then, too.)
//   2. The last completion of an operation is posted after the last use of an address.
//   3. A virtual thread leaves ParkedOp::Run only after that completion was taken: `Complete` is
//   the
//      only thing that ends its wait. A deadline or a cancel only asks the kernel to give up, and
//      waits on.
//   4. A stack is given back when its virtual thread has ended, and nothing unwinds one from
//      outside.
//   The destructor asserts it: a record that is in flight must not end.
//
// No lock, no atomic: from start to last completion only one OS thread touches a record, that of
// the ring; the virtual thread that waits belongs there, too.
//
//   Called from   as above.
//   Suspends      ParkedOp::Run.

#ifndef BOBBIN_IO_SRC_OP_H_
#define BOBBIN_IO_SRC_OP_H_

#include <cstddef>
#include <cstdint>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/thread.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

class IoPoller;

enum class OpCode : uint8_t { kReceive, kSend, kConnect, kAccept };

// What a completion is for; the low bits of what the kernel is given.
enum class Tag : uint64_t {
  kOp,        // A record: see above.
  kCancel,    // A request to give up found nothing to give up; its target tells.
  kMessage,   // Somebody wakes the carrier.
  kDoorbell,  // The same, on a kernel that knows no messages.
};
inline constexpr uint64_t kTagMask = 15;
inline constexpr int kGenerationShift = 48;
inline constexpr uint64_t kAddressMask = ((uint64_t{1} << kGenerationShift) - 1) & ~kTagMask;

class alignas(kTagMask + 1) Op : public bobbin::internal::IntrusiveLink {
 public:
  enum class Stage : uint8_t { kIdle, kDeferred, kInFlight };

  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // What to do; the meaning of `data` and `bytes` is the code's: a buffer, or a socket address.
  OpCode code() const { return code_; }
  int fd() const { return fd_; }
  void* data() const { return data_; }
  uint32_t bytes() const { return bytes_; }

 protected:
  Op(OpCode code, int fd, void* data, uint32_t bytes)
      : data_(data), bytes_(bytes), fd_(fd), code_(code) {}
  ~Op() {
    BOBBIN_CHECK(stage_ == Stage::kIdle, "an operation ends while the kernel has it");
    magic_ = 0;
  }

  IoPoller* poller() const { return poller_; }

 private:
  friend class RingPoller;
  static constexpr uint32_t kMagic = 0x0bb1'4090;

  uint64_t user_data() const {
    return static_cast<uint64_t>(generation_) << kGenerationShift |
           reinterpret_cast<uintptr_t>(this) | static_cast<uint64_t>(Tag::kOp);
  }

  void* const data_;
  IoPoller* poller_ = nullptr;  // Who has it, while it is not idle.
  const uint32_t bytes_;
  const int fd_;
  uint32_t magic_ = kMagic;
  uint16_t generation_ = 0;
  const OpCode code_;
  Stage stage_ = Stage::kIdle;
  bool is_cancel_wanted_ = false;  // Asked for since it started.
};

// One operation that a virtual thread waits for.
class ParkedOp final : public Op, public bobbin::internal::KernelWait {
 public:
  ParkedOp(OpCode code, int fd, void* data, uint32_t bytes) : Op(code, fd, data, bytes) {
    kind = &kWaitKinds[static_cast<size_t>(code)];
    object = bobbin::internal::WaitNumber(fd);
  }

  // Has the calling virtual thread's carrier do it, and parks until the kernel has let go of it.
  // REQUIRES: `self` is the calling virtual thread and may wait.
  Result Run(bobbin::internal::Thread& self) noexcept {
    BOBBIN_DCHECK(self.role() == Role::kVirtual, "only virtual threads park");
    thread_ = &self;
    StartHere();
    self.state().BeginWait(bobbin::internal::Phase::kWaitingKernel);
    const bobbin::internal::Wake wake = self.Park(*this);
    BOBBIN_DCHECK(wake == bobbin::internal::Wake::kNotified, "a wait ended without its completion");
    static_cast<void>(wake);
    // A result that arrived wins over the request to give up.
    if (__builtin_expect(result_ == -ECANCELED && is_stop_requested_, 0)) {
      return StoppedBy(stop_cause_);
    }
    return result_;
  }

  // Called from: the carrier, or the virtual thread itself on its way to park.
  void RequestStop(bobbin::internal::Wake cause) noexcept override;
  // Called from: the poller, with the one completion.
  void Complete(int32_t result) noexcept {
    result_ = result;
    thread_->state().Complete();
    thread_->dispatcher()->MakeReady(*thread_);
  }
  // Called from: the poller, to have what Complete touches at hand.
  void Prefetch() const noexcept { __builtin_prefetch(thread_, 1); }

 private:
  // How a dump calls them, by code.
  static constexpr bobbin::internal::WaitKind kWaitKinds[] = {
      {"receive", bobbin::internal::WaitObject::kDescriptor},
      {"send", bobbin::internal::WaitObject::kDescriptor},
      {"connect", bobbin::internal::WaitObject::kDescriptor},
      {"accept", bobbin::internal::WaitObject::kDescriptor},
  };

  // On the poller of the calling virtual thread's carrier.
  void StartHere() noexcept;

  bobbin::internal::Thread* thread_ = nullptr;
  int32_t result_ = 0;
  bool is_stop_requested_ = false;  // Asked to give up; the first cause is kept.
  bobbin::internal::Wake stop_cause_ = bobbin::internal::Wake::kNotified;
};

// A listening socket's stream of connections.
class AcceptOp : public Op {
 public:
  // Called from: the poller, on its OS thread, with each completion. `result` is a new descriptor,
  // the callee's, or a negative error number. With `is_last` the record is idle again, and may be
  // gone when this returns.
  virtual void OnAccept(int32_t result, bool is_last) noexcept = 0;

 protected:
  explicit AcceptOp(int fd) : Op(OpCode::kAccept, fd, nullptr, 0) {}
  ~AcceptOp() = default;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_OP_H_
