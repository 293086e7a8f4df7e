// SPDX-License-Identifier: Apache-2.0
//
// File system: what is done with files by their names.
//
//   Called from   Virtual threads of any runtime, platform and foreign threads; the last two block.
//   Suspends      All of them.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What waits for a platform thread is
//                 then not done; one system call that has begun is done. A copy or a replacement
//                 that was ended leaves what was there before.
//   Errors        errno's canonical code, and what was tried: "remove /var/x: no such file or
//                 directory". INVALID_ARGUMENT: a path has a zero byte.
//   Cost          A round trip to a platform thread, besides the calls.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(std::string settings, bobbin::io::ReadFile("/etc/app.properties"));
//   BOBBIN_RETURN_IF_ERROR(bobbin::io::ReplaceFile("/var/lib/app/state", state));

#ifndef BOBBIN_IO_FILE_SYSTEM_H_
#define BOBBIN_IO_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/file.h>

namespace bobbin::io {

enum class Links : uint8_t { kFollowed, kThemselves };

// What becomes of a file that has the name already.
enum class Existing : uint8_t {
  kReplaced,
  kKept,  // The call fails: ALREADY_EXISTS.
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kUnknown;
  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

absl::StatusOr<FileStat> Stat(std::string_view path, Links links = Links::kFollowed);
// Sorted by name, without "." and "..". Takes memory for all of them.
absl::StatusOr<std::vector<DirectoryEntry>> ListDirectory(std::string_view path);
// Permissions less the process's umask. ALREADY_EXISTS if anything has that name.
absl::Status MakeDirectory(std::string_view path, uint32_t permissions = 0755);
// FAILED_PRECONDITION unless it is empty.
absl::Status RemoveDirectory(std::string_view path);
absl::Status RemoveFile(std::string_view path);
// In one step: whoever looks finds the one file or the other.
absl::Status Rename(std::string_view from, std::string_view to,
                    Existing existing = Existing::kReplaced);
// Contents and permissions. The copy has its name when it is whole.
absl::Status CopyFile(std::string_view from, std::string_view to,
                      Existing existing = Existing::kReplaced);
// The whole of it. OUT_OF_RANGE if it is longer than `bytes_max`.
absl::StatusOr<std::string> ReadFile(std::string_view path, size_t bytes_max = 64 << 20);
// Puts `bytes` in the place of what the file held, in one step, and on the disk: whoever looks,
// also after a crash, finds the old contents or the new. A file that was there keeps its
// permissions.
absl::Status ReplaceFile(std::string_view path, std::span<const std::byte> bytes,
                         uint32_t permissions = 0644);
absl::Status ReplaceFile(std::string_view path, std::string_view text,
                         uint32_t permissions = 0644);

}  // namespace bobbin::io

#endif  // BOBBIN_IO_FILE_SYSTEM_H_
