// SPDX-License-Identifier: Apache-2.0
//
// SignalSlot: what one Signals has asked for, and what has come for it. There is a fixed number of
// slots, which are never freed, so that a signal handler may go through them at any instant.
//
// States of a slot
//
//   free       wanted = 0, no descriptor
//   open       wanted = the signals that were asked for; the descriptor counts tokens
//
// A signal that comes, for each open slot that wants it: its bit in `pending` is set; if it was not
// set, a token is put into the descriptor. Who waits takes a token, then a bit.
//
// Why no signal is lost, and no wait ended in vain: tokens, together with those that a handler is
// about to put in and those whose taker has not taken its bit yet, are as many as bits. A bit is
// set only by a handler, which puts one token in if and only if it has set the bit; a taker takes
// one of each. So who has taken a token finds a bit, perhaps not that of the same handler, whose
// own token is then on its way. A thread that waits for a token waits for the descriptor to be
// readable, which it is as long as there is one.
//
// Why no handler touches what has been closed: a handler counts itself before it reads
// `wanted`; Close takes `wanted` away, then waits until nobody runs, then closes the descriptor.
// All of it is sequentially consistent, so either the handler is seen, or it sees that nothing is
// wanted. A handler never waits, so neither does Close for long; one that interrupts Close's own
// thread has ended when that goes on.
//
//   Called from   Open, Close: any thread. Take: any thread. The handler: any, at any instant.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_SIGNAL_SLOT_H_
#define BOBBIN_IO_SRC_SIGNAL_SLOT_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>

#include "io/src/file_descriptor.h"

namespace bobbin::io::internal {

class SignalSlot {
 public:
  SignalSlot() = default;
  SignalSlot(const SignalSlot&) = delete;
  SignalSlot& operator=(const SignalSlot&) = delete;

  static absl::StatusOr<SignalSlot*> Open(std::initializer_list<int> signals);
  void Close();

  // A signal that has come. If there is none, `fd` becomes readable with the next one.
  std::optional<int> Take();
  int fd() const { return tokens_.get(); }

 private:
  static void OnSignal(int signal) noexcept;
  static uint64_t BitOf(int signal) { return uint64_t{1} << (signal - 1); }
  void Note(uint64_t bit) noexcept;
  // Open becomes free.
  void Empty();

  // One bit a signal. Written by Open and Close, read by handlers: what they may touch.
  bobbin::internal::Atomic<uint64_t> wanted_{0};
  // Written by handlers and takers.
  bobbin::internal::Atomic<uint64_t> pending_{0};
  // An eventfd that counts. Written while nothing is wanted.
  FileDescriptor tokens_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_SIGNAL_SLOT_H_
