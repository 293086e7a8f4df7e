// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: owns a descriptor and closes it.

#ifndef BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_
#define BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace bobbin::io::internal {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (is_open()) ::close(fd_);
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Gives it away.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_
