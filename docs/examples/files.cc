// SPDX-License-Identifier: Apache-2.0
//
// Files: read, written and replaced by virtual threads, whose carriers never wait for a disk.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/io/file.h>
#include <bobbin/io/file_system.h>
#include <bobbin/sched/runtime.h>

using bobbin::io::File;

namespace {

// [journal]
class Journal {
 public:
  static absl::StatusOr<Journal> Open(std::string_view path) {
    BOBBIN_ASSIGN_OR_RETURN(auto file,
                            File::Open(path, {.access = bobbin::io::FileAccess::kAppend,
                                              .creation = bobbin::io::FileCreation::kIfMissing}));
    return Journal(std::move(file));
  }

  // On the disk when it returns.
  absl::Status Add(std::string_view entry) {
    BOBBIN_RETURN_IF_ERROR(file_.Write(std::as_bytes(std::span(entry))));
    return file_.Sync();
  }

 private:
  explicit Journal(File file) : file_(std::move(file)) {}
  File file_;
};
// [/journal]

// [block]
absl::StatusOr<std::vector<std::byte>> ReadBlock(File& file, uint64_t number) {
  constexpr size_t kBlock = 4096;
  std::vector<std::byte> block(kBlock);
  BOBBIN_ASSIGN_OR_RETURN(const size_t have, file.ReadAt(block, number * kBlock));
  block.resize(have);  // Less at the end of the file.
  return block;
}
// [/block]

// [settings]
absl::Status CountStart(const std::string& path) {
  auto text = bobbin::io::ReadFile(path);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  const int starts = text.ok() ? std::stoi(*text) : 0;
  // In one step: after a crash there is the old number or the new one.
  return bobbin::io::ReplaceFile(path, std::to_string(starts + 1));
}
// [/settings]

absl::Status Main() {
  const std::string directory = fmt::format("/tmp/bobbin-files-{}", ::getpid());
  BOBBIN_RETURN_IF_ERROR(bobbin::io::MakeDirectory(directory));

  BOBBIN_ASSIGN_OR_RETURN(auto journal, Journal::Open(directory + "/journal"));
  BOBBIN_RETURN_IF_ERROR(journal.Add("started\n"));
  BOBBIN_RETURN_IF_ERROR(journal.Add("ended\n"));

  BOBBIN_ASSIGN_OR_RETURN(auto file, File::Open(directory + "/journal"));
  BOBBIN_ASSIGN_OR_RETURN(const auto block, ReadBlock(file, 0));
  if (block.size() != 14) return absl::InternalError("14 bytes");

  BOBBIN_RETURN_IF_ERROR(CountStart(directory + "/starts"));
  BOBBIN_RETURN_IF_ERROR(CountStart(directory + "/starts"));
  BOBBIN_ASSIGN_OR_RETURN(const std::string starts, bobbin::io::ReadFile(directory + "/starts"));
  if (starts != "2") return absl::InternalError("2 starts");

  BOBBIN_ASSIGN_OR_RETURN(const auto entries, bobbin::io::ListDirectory(directory));
  for (const auto& entry : entries) {
    fmt::print("{}\n", entry.name);
    BOBBIN_RETURN_IF_ERROR(bobbin::io::RemoveFile(directory + "/" + entry.name));
  }
  return bobbin::io::RemoveDirectory(directory);
}

}  // namespace

int main() { return bobbin::Run(Main); }
