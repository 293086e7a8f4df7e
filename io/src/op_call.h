// SPDX-License-Identifier: Apache-2.0
//
// OpCall: an operation as a system call that does not wait, and what to wait for where it would
// have to.
//
// An epoll does all operations that way. A ring does those that the kernel has no entry for, and
// sends where that is shorter.
//
//   Called from   the poller's OS thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_OP_CALL_H_
#define BOBBIN_IO_SRC_OP_CALL_H_

#include <poll.h>

#include <cstdint>

#include "io/src/op.h"

namespace bobbin::io::internal {

// Makes the call: its result, or -EAGAIN if there is something to wait for. REQUIRES: `op` is no
// LastingOp, no pooled receive and no send without a copy: those are the poller's.
int32_t MakeCall(const Op& op) noexcept;

// Whether `op` brings bytes, or takes them away.
constexpr bool IsReceive(OpCode code) noexcept {
  return code == OpCode::kReceive || code == OpCode::kReceiveMessage || code == OpCode::kRead ||
         code == OpCode::kReceiveBatch || code == OpCode::kReceivePooled;
}
constexpr bool IsSend(OpCode code) noexcept {
  return code == OpCode::kSend || code == OpCode::kSendMessage;
}

// Whether `op` is always a call, also with a ring: reads and writes of pipes, whose descriptors say
// that calls are not to wait, and batches.
constexpr bool IsAlwaysCall(OpCode code) noexcept {
  return code == OpCode::kRead || code == OpCode::kWrite || code == OpCode::kReceiveBatch;
}

// Whether a look has shown that nothing will come any more, where a call would only say that there
// is nothing: datagrams, when the socket was shut down.
constexpr bool IsOver(int32_t events) noexcept { return (events & POLLHUP) != 0; }

// write(2) to a pipe that nobody reads any more is an error, and no signal.
Result WriteWithoutSignal(int fd, const void* data, size_t bytes) noexcept;

// Whether a look at the descriptor shows one of poll(2)'s `events`, or an ending: those, or
// -EAGAIN.
int32_t Look(int fd, short events) noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_OP_CALL_H_
