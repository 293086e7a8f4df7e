// SPDX-License-Identifier: Apache-2.0
//
// InterruptibleCall: system calls that another thread can end, with no instant at which asking
// comes too early or too late.
//
// Three things make up a call: a look whether it has been interrupted, the kernel's instruction,
// and the answer. They are one short piece of code whose bounds are known. An interrupter sets a
// word, then sends the calling OS thread a signal. The handler looks where it has stopped the
// thread:
//
//   before the look           nothing to do: the look will see the word
//   from the look up to the   the call has not begun, or the kernel has stopped it before it did
//   kernel's instruction      anything and was about to begin it anew: it is sent to the way out
//   after it                  nothing to do: the kernel has answered, and the answer stands
//
// So what the kernel has done is never lost: bytes that were read are returned, a file that was
// opened has a descriptor. A call that the kernel cannot stop, such as a read from a disk, ends by
// itself.
//
// No interruption is lost. The caller announces itself, then looks at the word; the interrupter
// sets the word, then looks who is announced; all of that in one order: one of the two sees the
// other. A signal that comes when its call has ended finds the thread elsewhere, or in the code of
// another call, whose own word tells that it is not meant.
//
//   Called from   Run: one OS thread that lets the signal in (thread_signal.h), one call at a time.
//                 Interrupt: any thread, while the object lives.
//   Suspends      Run blocks the OS thread.
//   Cost          some 10 ns besides the call; an interruption: a signal.
//   Source        the bounds of a call are how musl makes system calls cancellation points.

#ifndef BOBBIN_CORE_INTERNAL_INTERRUPTIBLE_CALL_H_
#define BOBBIN_CORE_INTERNAL_INTERRUPTIBLE_CALL_H_

#include <sys/types.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

class InterruptibleCall {
 public:
  InterruptibleCall() = default;
  InterruptibleCall(const InterruptibleCall&) = delete;
  InterruptibleCall& operator=(const InterruptibleCall&) = delete;

  // Makes the system call of that number. What the kernel answers: an error number comes negated.
  // -EINTR: it was interrupted, and the kernel has done nothing. Other signals do not end it.
  template <typename... Arguments>
  int64_t Run(long number, Arguments... arguments) noexcept {
    static_assert(sizeof...(Arguments) <= kArgumentsMax);
    return Make(number, {AsRegister(arguments)...});
  }

  // Ends the call that is being made, and all that are made by this object from now on.
  void Interrupt() noexcept;
  bool is_interrupted() const noexcept { return is_interrupted_.load() != 0; }

  // For the signal's handler: gets the thread that `context` (a ucontext_t) describes out of a call
  // that has been interrupted. Whether it was in one.
  static bool LeaveInterrupted(void* context) noexcept;

 private:
  static constexpr size_t kArgumentsMax = 6;
  using Registers = std::array<int64_t, kArgumentsMax>;

  template <std::integral T>
  static int64_t AsRegister(T value) noexcept {
    return static_cast<int64_t>(value);
  }
  static int64_t AsRegister(const void* pointer) noexcept {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
  }
  int64_t Make(long number, const Registers& arguments) noexcept;

  Atomic<uint32_t> is_interrupted_{0};  // Written by interrupters; read by caller and handler.
  Atomic<pid_t> os_thread_{0};          // Written by the caller; read by interrupters.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_INTERRUPTIBLE_CALL_H_
