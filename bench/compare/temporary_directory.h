// SPDX-License-Identifier: Apache-2.0
//
// TemporaryDirectory: a new directory that ends, with all that is in it, when its owner does.

#ifndef BOBBIN_BENCH_COMPARE_TEMPORARY_DIRECTORY_H_
#define BOBBIN_BENCH_COMPARE_TEMPORARY_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace bobbin::compare {

class TemporaryDirectory {
 public:
  // Below $TMPDIR, or /tmp.
  static absl::StatusOr<TemporaryDirectory> Make();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept
      : path_(std::exchange(other.path_, std::string())) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;  // Empty when it has been moved from.
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TEMPORARY_DIRECTORY_H_
