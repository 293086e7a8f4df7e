// SPDX-License-Identifier: Apache-2.0
//
// UnixName: a path or an abstract name, as the system takes it.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_UNIX_NAME_H_
#define BOBBIN_IO_SRC_UNIX_NAME_H_

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::io::internal {

class UnixName {
 public:
  static absl::StatusOr<UnixName> Parse(std::string_view text);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t bytes() const { return bytes_; }
  // The path; empty for an abstract name.
  std::string path() const { return is_path_ ? address_.sun_path : ""; }

 private:
  sockaddr_un address_{};
  socklen_t bytes_ = 0;
  bool is_path_ = false;
};

// The path of a listening socket, which goes with it.
class BoundPath {
 public:
  // None.
  BoundPath() = default;
  // REQUIRES: a socket was bound to it just now.
  explicit BoundPath(std::string path);
  // Removes it, unless it is another file's by now.
  void Remove() noexcept;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_UNIX_NAME_H_
