// SPDX-License-Identifier: Apache-2.0
//
// OpCall: an operation as a system call that does not wait, and what to wait for where it would
// have to.
//
// An epoll does all operations that way. A ring does those sends that are shorter so.
//
//   Called from   the poller's OS thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_OP_CALL_H_
#define BOBBIN_IO_SRC_OP_CALL_H_

#include <cstdint>

#include "io/src/op.h"

namespace bobbin::io::internal {

// Makes the call: its result, or -EAGAIN if there is something to wait for. REQUIRES: `op` is no
// accept.
int32_t MakeCall(const Op& op) noexcept;

// Whether `op` brings bytes, or takes them away.
constexpr bool IsReceive(OpCode code) noexcept {
  return code == OpCode::kReceive || code == OpCode::kReceiveMessage || code == OpCode::kRead;
}
constexpr bool IsSend(OpCode code) noexcept {
  return code == OpCode::kSend || code == OpCode::kSendMessage;
}

// Whether `op` is one of a pipe, whose descriptor says that calls are not to wait.
constexpr bool IsOfPipe(OpCode code) noexcept {
  return code == OpCode::kRead || code == OpCode::kWrite;
}

// write(2) to a pipe that nobody reads any more is an error, and no signal.
Result WriteWithoutSignal(int fd, const void* data, size_t bytes) noexcept;

// Whether a look at the descriptor shows one of poll(2)'s `events`, or an ending: those, or
// -EAGAIN.
int32_t Look(int fd, short events) noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_OP_CALL_H_
