// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/file_system.h>

#include "io/src/file_call.h"
#include "io/src/file_descriptor.h"
#include "io/src/file_stat.h"
#include "io/src/limits.h"
#include "io/src/path.h"
#include "io/src/replacement.h"

namespace bobbin::io {

using internal::BlockingLane;
using internal::CheckedPath;
using internal::FileBody;
using internal::FileDescriptor;
using internal::FileOperation;
using internal::InterruptibleCall;
using internal::kFilePieceBytes;
using internal::Replacement;
using internal::Result;
using internal::RunFileCall;

namespace {

// One system call about one name.
template <typename... Arguments>
absl::Status CallByName(std::string_view verb, std::string_view path, long number,
                        Arguments... arguments) {
  const FileOperation operation{.verb = verb, .path = path};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, CheckedPath(operation));
  return RunFileCall(operation, [&](InterruptibleCall& call) -> Result {
           return call.Run(number, AT_FDCWD, name.c_str(), arguments...);
         })
      .status();
}

Result OpenToRead(InterruptibleCall& call, const std::string& name, int flags = 0) {
  return call.Run(SYS_openat, AT_FDCWD, name.c_str(), O_RDONLY | O_CLOEXEC | flags, 0);
}

Result StatOf(InterruptibleCall& call, int fd, struct statx& found) {
  return call.Run(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found);
}

Result WriteWhole(InterruptibleCall& call, int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const Result put =
        call.Run(SYS_write, fd, bytes.data(), std::min(bytes.size(), kFilePieceBytes));
    if (put < 0) return put;
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return 0;
}

// From one position to the other, until `from` ends.
Result CopyContents(InterruptibleCall& call, int from, int to) {
  std::unique_ptr<std::byte[]> buffer;
  for (bool has_moved = false;; has_moved = true) {
    Result moved = 0;
    if (buffer == nullptr) {
      moved = call.Run(SYS_copy_file_range, from, nullptr, to, nullptr, kFilePieceBytes, 0);
      // Some files the kernel does not copy by itself, or seems to find empty, as those of /proc.
      const bool can_it = has_moved || moved > 0 || moved == -EINTR;
      if (!can_it) buffer = std::make_unique<std::byte[]>(kFilePieceBytes);
    }
    if (buffer != nullptr) {
      moved = call.Run(SYS_read, from, buffer.get(), kFilePieceBytes);
      if (moved > 0) {
        const Result put =
            WriteWhole(call, to, std::span(buffer.get(), static_cast<size_t>(moved)));
        if (put < 0) return put;
      }
    }
    if (moved <= 0) return moved;
  }
}

// Not to be interrupted: what is in the directory by now has happened.
Result SyncDirectory(const std::string& name) {
  const FileDescriptor directory(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return -errno;
  const int error = ::fsync(directory.get()) == 0 ? 0 : errno;
  // Not every file system can.
  return error == EINVAL ? 0 : -error;
}

FileKind FromEntryType(uint32_t type) { return internal::FromMode(type << 12); }

}  // namespace

absl::StatusOr<FileStat> Stat(std::string_view path, Links links) {
  struct statx found {};
  BOBBIN_RETURN_IF_ERROR(CallByName("stat", path, SYS_statx,
                                    links == Links::kFollowed ? 0 : AT_SYMLINK_NOFOLLOW,
                                    STATX_BASIC_STATS, &found));
  return internal::FromStatx(found);
}

absl::StatusOr<std::vector<DirectoryEntry>> ListDirectory(std::string_view path) {
  const FileOperation operation{.verb = "list", .path = path};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, CheckedPath(operation));
  std::vector<DirectoryEntry> entries;
  const auto list = [&](InterruptibleCall& call) -> Result {
    const Result opened = OpenToRead(call, name, O_DIRECTORY);
    if (opened < 0) return opened;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(static_cast<int>(opened)),
                                                        &::closedir);
    if (directory == nullptr) return -errno;
    while (!call.is_interrupted()) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) {
        const int error = errno;
        std::sort(entries.begin(), entries.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        return -error;
      }
      const std::string_view entry_name = entry->d_name;
      if (entry_name == "." || entry_name == "..") continue;
      FileKind kind = FromEntryType(entry->d_type);
      struct stat found {};
      if (kind == FileKind::kUnknown && ::fstatat(::dirfd(directory.get()), entry->d_name, &found,
                                                  AT_SYMLINK_NOFOLLOW) == 0) {
        kind = internal::FromMode(found.st_mode);
      }
      entries.push_back({.name = std::string(entry_name), .kind = kind});
    }
    return -EINTR;
  };
  BOBBIN_RETURN_IF_ERROR(RunFileCall(operation, list).status());
  return entries;
}

absl::Status MakeDirectory(std::string_view path, uint32_t permissions) {
  return CallByName("make directory", path, SYS_mkdirat, permissions);
}

absl::Status RemoveDirectory(std::string_view path) {
  return CallByName("remove directory", path, SYS_unlinkat, AT_REMOVEDIR);
}

absl::Status RemoveFile(std::string_view path) {
  return CallByName("remove", path, SYS_unlinkat, 0);
}

absl::Status Rename(std::string_view from, std::string_view to, Existing existing) {
  BOBBIN_ASSIGN_OR_RETURN(const std::string target, CheckedPath({.verb = "rename to", .path = to}));
  return CallByName("rename", from, SYS_renameat2, AT_FDCWD, target.c_str(),
                    existing == Existing::kKept ? RENAME_NOREPLACE : 0);
}

absl::Status CopyFile(std::string_view from, std::string_view to, Existing existing) {
  const std::string both = fmt::format("{} to {}", from, to);
  const FileOperation operation{.verb = "copy", .path = both};
  BOBBIN_ASSIGN_OR_RETURN(const std::string source, CheckedPath({.verb = "copy", .path = from}));
  BOBBIN_ASSIGN_OR_RETURN(const std::string target, CheckedPath({.verb = "copy to", .path = to}));
  const auto copy = [&](InterruptibleCall& call) -> Result {
    const Result opened = OpenToRead(call, source);
    if (opened < 0) return opened;
    const FileDescriptor original(static_cast<int>(opened));
    struct statx found {};
    if (const Result known = StatOf(call, original.get(), found); known < 0) return known;
    if (internal::FromMode(found.stx_mode) == FileKind::kDirectory) return -EISDIR;
    Replacement made(target);
    if (const Result begun = made.Begin(call, 0600); begun < 0) return begun;
    if (const Result copied = CopyContents(call, original.get(), made.fd()); copied < 0) {
      return copied;
    }
    const Result permitted = call.Run(SYS_fchmod, made.fd(), found.stx_mode & 07777u);
    return permitted < 0 ? permitted : made.Commit(existing);
  };
  return RunFileCall(operation, copy).status();
}

absl::StatusOr<std::string> ReadFile(std::string_view path, size_t bytes_max) {
  const FileOperation operation{.verb = "read", .path = path};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, CheckedPath(operation));
  bytes_max = std::min(bytes_max, std::string().max_size() - 1);
  std::string contents;
  bool is_too_long = false;
  const auto read = [&](InterruptibleCall& call) -> Result {
    const Result opened = OpenToRead(call, name);
    if (opened < 0) return opened;
    const FileDescriptor file(static_cast<int>(opened));
    struct statx found {};
    if (const Result known = StatOf(call, file.get(), found); known < 0) return known;
    // One byte more shows the end. What has no size is read in pieces that grow.
    size_t piece = std::min<uint64_t>({found.stx_size + 1, bytes_max + 1, kFilePieceBytes});
    size_t have = 0;
    while (true) {
      contents.resize(have + piece);
      const Result got = call.Run(SYS_read, file.get(), contents.data() + have, piece);
      if (got < 0) return got;
      have += static_cast<size_t>(got);
      contents.resize(have);
      is_too_long = have > bytes_max;
      if (got == 0 || is_too_long) return 0;
      piece = std::min({std::max(have, size_t{4096}), kFilePieceBytes, bytes_max + 1 - have});
    }
  };
  BOBBIN_RETURN_IF_ERROR(RunFileCall(operation, read).status());
  if (!is_too_long) return contents;
  return MakeStatus(absl::StatusCode::kOutOfRange,
                    fmt::format("read {}: it is longer than {} bytes", path, bytes_max));
}

absl::Status ReplaceFile(std::string_view path, std::span<const std::byte> bytes,
                         uint32_t permissions) {
  const FileOperation operation{.verb = "replace", .path = path};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, CheckedPath(operation));
  const auto replace = [&](InterruptibleCall& call) -> Result {
    struct statx former {};
    const Result known =
        call.Run(SYS_statx, AT_FDCWD, name.c_str(), 0, STATX_BASIC_STATS, &former);
    if (known < 0 && known != -ENOENT) return known;
    Replacement made(name);
    if (const Result begun = made.Begin(call, permissions); begun < 0) return begun;
    if (known == 0) {
      const Result permitted = call.Run(SYS_fchmod, made.fd(), former.stx_mode & 07777u);
      if (permitted < 0) return permitted;
    }
    if (const Result put = WriteWhole(call, made.fd(), bytes); put < 0) return put;
    if (const Result synced = call.Run(SYS_fsync, made.fd()); synced < 0) return synced;
    if (const Result named = made.Commit(Existing::kReplaced); named < 0) return named;
    return SyncDirectory(internal::DirectoryOf(name));
  };
  return RunFileCall(operation, replace, BlockingLane::kSync).status();
}

absl::Status ReplaceFile(std::string_view path, std::string_view text, uint32_t permissions) {
  return ReplaceFile(path, std::as_bytes(std::span(text)), permissions);
}

}  // namespace bobbin::io
