// SPDX-License-Identifier: Apache-2.0
//
// Path: names of files on their way to the kernel.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_PATH_H_
#define BOBBIN_IO_SRC_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "io/src/file_call.h"

namespace bobbin::io::internal {

// The operation's path with a zero byte behind it. INVALID_ARGUMENT if there is one inside: the
// kernel would take the name up to there for the whole.
absl::StatusOr<std::string> CheckedPath(const FileOperation& operation);

// The directory that holds what has that name.
std::string DirectoryOf(std::string_view path);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_PATH_H_
