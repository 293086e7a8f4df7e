// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <bobbin/core/status.h>

namespace bobbin::compare {

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Make() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = (error ? std::filesystem::path("/tmp") : parent) / "bobbin-compare-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "make " + path);
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace bobbin::compare
