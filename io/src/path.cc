// SPDX-License-Identifier: Apache-2.0

#include "io/src/path.h"

#include <cerrno>

#include "absl/strings/escaping.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::io::internal {

absl::StatusOr<std::string> CheckedPath(const FileOperation& operation) {
  if (operation.path.find('\0') == std::string_view::npos) return std::string(operation.path);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("{} {}: there is a zero byte in the name", operation.verb,
                                absl::CEscape({operation.path.data(), operation.path.size()})));
}

std::string DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace bobbin::io::internal
