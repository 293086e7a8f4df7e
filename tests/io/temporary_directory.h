// SPDX-License-Identifier: Apache-2.0
//
// TemporaryDirectory: a directory of a test's own, which goes with all that is in it.
//
//   Called from   any thread that may block.

#ifndef BOBBIN_TESTS_IO_TEMPORARY_DIRECTORY_H_
#define BOBBIN_TESTS_IO_TEMPORARY_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace bobbin::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = testing::TempDir() + "bobbin-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_TEMPORARY_DIRECTORY_H_
