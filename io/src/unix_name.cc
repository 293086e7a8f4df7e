// SPDX-License-Identifier: Apache-2.0

#include "io/src/unix_name.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::io::internal {

absl::StatusOr<UnixName> UnixName::Parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("socket name {}: {}", text, why));
  };
  UnixName name;
  name.is_path_ = !text.starts_with('@');
  if (text.empty() || text == "@") return wrong("empty");
  if (name.is_path_ && text.find('\0') != text.npos) return wrong("a path has no zero byte");
  // A path ends with a zero byte; an abstract name begins with one, in the place of the `@`.
  const size_t room = sizeof(name.address_.sun_path) - (name.is_path_ ? 1 : 0);
  if (text.size() > room) return wrong(fmt::format("longer than {} bytes", room));
  name.address_.sun_family = AF_UNIX;
  std::memcpy(name.address_.sun_path, text.data(), text.size());
  if (!name.is_path_) name.address_.sun_path[0] = '\0';
  name.bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() +
                                       (name.is_path_ ? 1 : 0));
  return name;
}

BoundPath::BoundPath(std::string path) : path_(std::move(path)) {
  struct stat found {};
  if (path_.empty() || ::lstat(path_.c_str(), &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

void BoundPath::Remove() noexcept {
  struct stat found {};
  if (inode_ == 0 || ::lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
}

}  // namespace bobbin::io::internal
