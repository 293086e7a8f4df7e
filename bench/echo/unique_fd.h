// SPDX-License-Identifier: Apache-2.0
//
// UniqueFd: owns one file descriptor and closes it.

#ifndef BOBBIN_BENCH_ECHO_UNIQUE_FD_H_
#define BOBBIN_BENCH_ECHO_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace bobbin::bench {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_UNIQUE_FD_H_
