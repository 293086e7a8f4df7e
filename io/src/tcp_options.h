// SPDX-License-Identifier: Apache-2.0
//
// TCP options: TcpOptions as the system has them.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          one system call for each option that is not the system's default.

#ifndef BOBBIN_IO_SRC_TCP_OPTIONS_H_
#define BOBBIN_IO_SRC_TCP_OPTIONS_H_

#include "absl/status/statusor.h"

#include <bobbin/io/tcp.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

// What a descriptor that is about to be set was set to before.
enum class Before : uint8_t {
  kSystemDefaults,  // Nothing: what is to stay so costs no call.
  kAnything,
};

// 0, or a negative error number.
Result ApplyTcpOptions(int fd, const TcpOptions& options, Before before) noexcept;
absl::StatusOr<TcpOptions> ReadTcpOptions(int fd);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TCP_OPTIONS_H_
