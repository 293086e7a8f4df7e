// SPDX-License-Identifier: Apache-2.0
//
// RaceToConnect: a connection to that of several addresses which answers first (RFC 8305, "happy
// eyeballs").
//
// The addresses take turns by family. An attempt begins when the one before has failed, or has gone
// on for `attempt_delay`; it does not end those that have begun. The first that connects wins; the
// sockets of all others are closed before the call returns.
//
//   Called from   Virtual threads of a runtime with an I/O poller, platform and foreign threads;
//                 the last two block.
//   Suspends      until one has connected, or all have failed.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED.
//   Errors        All that have failed, each with its address; the code is that of the last one.
//   Cost          All attempts are the caller's own: no thread is started. A descriptor an attempt,
//                 and one for all.

#ifndef BOBBIN_IO_SRC_CONNECT_RACE_H_
#define BOBBIN_IO_SRC_CONNECT_RACE_H_

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/io/tcp.h>

#include "io/src/file_descriptor.h"

namespace bobbin::io::internal {

// The first one first, then one of the other family, and so on; within a family as they were.
std::vector<SocketAddress> TakingTurns(std::span<const SocketAddress> addresses);

struct RaceOptions {
  std::span<const SocketAddress> addresses;  // At least one.
  std::chrono::nanoseconds attempt_delay;
  const TcpOptions& tcp;
  std::string_view name;  // Whose they are, for errors.
};

absl::StatusOr<FileDescriptor> RaceToConnect(const RaceOptions& options);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_CONNECT_RACE_H_
