// SPDX-License-Identifier: Apache-2.0

#include "tests/support/leak_check.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace bobbin::test {

namespace {
size_t EntriesIn(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}
}  // namespace

size_t OpenDescriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(entry, error);
    // Whoever looks up names of functions keeps the files of the program and its libraries open.
    const bool is_of_symbols = target.string().find(".so") != std::string::npos ||
                               target == std::filesystem::read_symlink("/proc/self/exe", error);
    if (!is_of_symbols) ++count;
  }
  // One of them is the folder that is being read.
  return count - 1;
}

size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total_pages = 0;
  size_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t OsThreadCount() { return EntriesIn("/proc/self/task"); }

}  // namespace bobbin::test
