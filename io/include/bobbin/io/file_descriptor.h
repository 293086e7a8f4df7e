// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: owns a descriptor and closes it.
//
// What comes with a message from another process is held by one of these, and what a program gets
// from the system may be.
//
//   Called from   any thread.
//   Suspends      never.
//   Lifetime      Closed by the destructor, and when another one is assigned.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto message, peer.ReadWithDescriptors(buffer));
//   auto file = bobbin::io::File::Adopt(message.descriptors.at(0).Release(), "a peer's file");

#ifndef BOBBIN_IO_FILE_DESCRIPTOR_H_
#define BOBBIN_IO_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace bobbin::io {

class FileDescriptor {
 public:
  // Holds nothing; to be assigned to.
  FileDescriptor() = default;
  // Takes it over; a negative one is none.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    FileDescriptor old(std::exchange(fd_, other.Release()));
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

}  // namespace bobbin::io

#endif  // BOBBIN_IO_FILE_DESCRIPTOR_H_
