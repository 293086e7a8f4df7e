// SPDX-License-Identifier: Apache-2.0
//
// Op: the record of one operation that a poller does, or has the kernel do.
//
// Two kinds. A ParkedOp lies on the stack of the virtual thread that waits for it. A LastingOp lies
// on the heap, and brings one result after the other: an AcceptOp the connections of a listener, a
// DatagramOp the datagrams of a socket.
//
// What a ring gives the kernel to find a record again is one number: the record's address, whose
// low bits and top bits are free, with a tag below and the operation's generation above. The
// generation tells an operation from the one that had the same address before it.
//
// Stages
//
//   kIdle        no poller has it
//   kDeferred    started, and the poller holds it until its next poll: the ring had no room, or
//                epoll's turn has come to others
//   kInFlight    a ring: prepared, and the kernel may write to its buffer until the last completion
//                has been taken; epoll: waits until its descriptor is ready
//
// Why the kernel never writes to a stack that has been left. With epoll it writes only inside a
// system call of the carrier. With a ring:
//
//   1. The kernel uses the addresses in an operation while it executes an entry, and while it runs
//      work that it deferred: both only inside an enter of the ring's own OS thread, that is not
//      while a virtual thread runs. (It may hand an operation to a thread of its own; point 2 holds
//      then, too.)
//   2. The last completion of an operation is posted after the last use of an address. (Of a send
//      without a copy it is the last of several; see ring_poller.h.)
//   3. A virtual thread leaves ParkedOp::Run only after that completion was taken: `Complete` is
//      the only thing that ends its wait. A deadline or a cancel only asks the kernel to give up,
//      and waits on.
//   4. A stack is given back when its virtual thread has ended, and nothing unwinds one from
//      outside.
//   The destructor asserts it: a record that is in flight must not end.
//
// No lock, no atomic: from start to last completion only one OS thread touches a record, that of
// the poller; the virtual thread that waits belongs there, too.
//
//   Called from   as above.
//   Suspends      ParkedOp::Run.

#ifndef BOBBIN_IO_SRC_OP_H_
#define BOBBIN_IO_SRC_OP_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/thread.h>

#include "io/src/pollable.h"
#include "io/src/result.h"

namespace bobbin::io::internal {

class BufferPool;
class IoPoller;

enum class OpCode : uint8_t {
  kReceive,
  kSend,
  kConnect,
  kAccept,
  kAwaitReadable,
  kAwaitWritable,
  kReceiveMessage,
  kSendMessage,
  kRead,
  kWrite,
  kReceiveBatch,
  kReceivePooled,
  kSendZeroCopy,
  kReceiveAhead,
};

// Where a pooled receive puts the buffer that it was lent.
struct PooledSlot {
  BufferPool* pool = nullptr;
  std::byte* buffer = nullptr;
  bool is_readable = false;  // A look has shown that there are bytes, or the end.
};

// A send without a copy, as far as it has come.
struct ZeroCopySend {
  std::span<const std::byte> rest;  // What the kernel has not taken yet.
  uint32_t held = 0;                // Requests whose bytes the kernel still needs.
  bool is_ending = false;           // No more is sent: all was, or
  int32_t error = 0;                // this is why not.
};

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

  // What to do; the meaning of `data` and `bytes` is the code's: a buffer, a socket address, a
  // msghdr and what its parts hold together, mmsghdrs and their number, a PooledSlot and what a
  // buffer holds, a ZeroCopySend and what it has to send, or, of datagrams that are received ahead,
  // a msghdr.
  OpCode code() const { return code_; }
  const Pollable& pollable() const { return pollable_; }
  int fd() const { return pollable_.fd; }
  void* data() const { return data_; }
  uint32_t bytes() const { return bytes_; }

 protected:
  // REQUIRES: `pollable` outlives the operation.
  Op(OpCode code, const Pollable& pollable, void* data, uint32_t bytes)
      : pollable_(pollable), data_(data), bytes_(bytes), code_(code) {}
  ~Op() {
    BOBBIN_CHECK(stage_ == Stage::kIdle, "an operation ends while a poller has it");
    magic_ = 0;
  }

  IoPoller* poller() const { return poller_; }

 private:
  friend class EpollPoller;
  friend class IoPoller;
  friend class RingPoller;
  // What a ring has the kernel do for it; see ring_poller.h.
  enum class Step : uint8_t { kCall, kLook, kWatch };

  static constexpr uint32_t kMagic = 0x0bb1'4090;

  uint64_t user_data() const {
    return static_cast<uint64_t>(generation_) << kGenerationShift |
           reinterpret_cast<uintptr_t>(this) | static_cast<uint64_t>(Tag::kOp);
  }

  const Pollable& pollable_;
  void* const data_;
  IoPoller* poller_ = nullptr;  // Who has it, while it is not idle.
  const uint32_t bytes_;
  uint32_t magic_ = kMagic;
  uint16_t generation_ = 0;
  const OpCode code_;
  Stage stage_ = Stage::kIdle;
  Step step_ = Step::kCall;
  bool is_cancel_wanted_ = false;  // Asked for since it started.
};

// One operation that a virtual thread waits for.
class ParkedOp final : public Op, public bobbin::internal::KernelWait {
 public:
  ParkedOp(OpCode code, const Pollable& pollable, void* data, uint32_t bytes)
      : Op(code, pollable, data, bytes) {
    kind = &kWaitKinds[static_cast<size_t>(code)];
    object = bobbin::internal::WaitNumber(pollable.fd);
  }

  // Has the poller of the calling virtual thread's carrier do it. If it is not done at once, parks
  // until it is and the kernel has let go of it. REQUIRES: `self` is the calling virtual thread and
  // may wait.
  Result Run(bobbin::internal::Thread& self) noexcept {
    BOBBIN_DCHECK(self.role() == Role::kVirtual, "only virtual threads park");
    thread_ = &self;
    if (IsDoneHere()) return result_;
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
  // The carrier that does it.
  bobbin::internal::Dispatcher& carrier() const noexcept { return *thread_->dispatcher(); }
  // Called from: the poller, if the operation is done before it was started.
  void set_result(int32_t result) noexcept { result_ = result; }
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
      {"readable", bobbin::internal::WaitObject::kDescriptor},
      {"writable", bobbin::internal::WaitObject::kDescriptor},
      {"receive", bobbin::internal::WaitObject::kDescriptor},
      {"send", bobbin::internal::WaitObject::kDescriptor},
      {"read", bobbin::internal::WaitObject::kDescriptor},
      {"write", bobbin::internal::WaitObject::kDescriptor},
      {"receive", bobbin::internal::WaitObject::kDescriptor},
      {"receive", bobbin::internal::WaitObject::kDescriptor},
      {"send", bobbin::internal::WaitObject::kDescriptor},
  };

  // IoPoller::DoOrStart, of the calling virtual thread's carrier.
  bool IsDoneHere() noexcept;

  bobbin::internal::Thread* thread_ = nullptr;
  int32_t result_ = 0;
  bool is_stop_requested_ = false;  // Asked to give up; the first cause is kept.
  bobbin::internal::Wake stop_cause_ = bobbin::internal::Wake::kNotified;
};

// An operation that goes on until it is ended.
class LastingOp : public Op {
 public:
  // Called from: the poller, on its OS thread, when it has seen a posted cancel (see io_poller.h).
  // The record may be gone when this returns.
  virtual void OnPostedCancel() noexcept = 0;

 protected:
  LastingOp(OpCode code, const Pollable& pollable, void* data) : Op(code, pollable, data, 0) {}
  ~LastingOp() = default;

 private:
  friend class IoPoller;

  LastingOp* next_posted_ = nullptr;
};

// A listening socket's stream of connections.
class AcceptOp : public LastingOp {
 public:
  // Whether accept(2) waits for a connection. A ring wants it to, for the kernel would not wait in
  // its stead; all others must not be caught in it when another process takes the connection.
  enum class Mode : uint8_t { kWaits, kReturns };

  // Called from: whoever is about to accept, if nobody else is.
  void SetMode(Mode mode) noexcept;
  // Called from: the poller, on its OS thread, with each completion. `result` is a new descriptor,
  // the callee's, or a negative error number. With `is_last` the record is idle again, and may be
  // gone when this returns.
  virtual void OnAccept(int32_t result, bool is_last) noexcept = 0;

 protected:
  explicit AcceptOp(const Pollable& pollable) : LastingOp(OpCode::kAccept, pollable, nullptr) {}
  ~AcceptOp() = default;

 private:
  Mode mode_ = Mode::kWaits;  // As the system makes a socket.
};

// A socket's stream of datagrams, each in a buffer of the carrier's.
class DatagramOp : public LastingOp {
 public:
  // Called from: the poller, on its OS thread, with each completion. `result` is how many bytes of
  // `lent`, the callee's, the kernel has filled, as io_uring_recvmsg_out says; or a negative error
  // number, without a buffer. With `is_last` as OnAccept.
  virtual void OnDatagram(int32_t result, const PooledSlot& lent, bool is_last) noexcept = 0;

 protected:
  // `message` says how much room there is for the peer's name, and must outlive the operation.
  DatagramOp(const Pollable& pollable, msghdr& message)
      : LastingOp(OpCode::kReceiveAhead, pollable, &message) {}
  ~DatagramOp() = default;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_OP_H_
