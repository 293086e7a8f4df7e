// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file.h>

#include "io/src/file_call.h"
#include "io/src/file_descriptor.h"
#include "io/src/open_file.h"
#include "io/src/path.h"

namespace bobbin::io {

using internal::FileDescriptor;
using internal::FileOperation;
using internal::InterruptibleCall;
using internal::OpenFile;
using internal::Result;

namespace {

int FlagsOf(const OpenOptions& options) {
  int flags = O_CLOEXEC | O_NOCTTY;
  switch (options.access) {
    case FileAccess::kRead:
      flags |= O_RDONLY;
      break;
    case FileAccess::kWrite:
      flags |= O_WRONLY;
      break;
    case FileAccess::kReadWrite:
      flags |= O_RDWR;
      break;
    case FileAccess::kAppend:
      flags |= O_WRONLY | O_APPEND;
      break;
  }
  switch (options.creation) {
    case FileCreation::kNever:
      break;
    case FileCreation::kIfMissing:
      flags |= O_CREAT;
      break;
    case FileCreation::kMustBeNew:
      flags |= O_CREAT | O_EXCL;
      break;
    case FileCreation::kEmptied:
      flags |= O_CREAT | O_TRUNC;
      break;
  }
  return flags;
}

}  // namespace

File::File() = default;
File::File(File&& other) noexcept = default;
File& File::operator=(File&& other) noexcept = default;
File::~File() = default;
File::File(std::unique_ptr<OpenFile> file) : file_(std::move(file)) {}

absl::StatusOr<File> File::Open(std::string_view path, const OpenOptions& options) {
  const FileOperation operation{.verb = "open", .path = path};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, internal::CheckedPath(operation));
  BOBBIN_ASSIGN_OR_RETURN(
      const size_t fd, RunFileCall(operation, [&](InterruptibleCall& call) -> Result {
        return call.Run(SYS_openat, AT_FDCWD, name.c_str(), FlagsOf(options), options.permissions);
      }));
  return Adopt(static_cast<int>(fd), path);
}

absl::StatusOr<File> File::OpenTemporary(std::string_view directory) {
  const FileOperation operation{.verb = "open temporary file in", .path = directory};
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, internal::CheckedPath(operation));
  BOBBIN_ASSIGN_OR_RETURN(
      const size_t fd, RunFileCall(operation, [&](InterruptibleCall& call) -> Result {
        const Result nameless = call.Run(SYS_openat, AT_FDCWD, name.c_str(),
                                         O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        // Some file systems only know files with names.
        if (nameless != -EOPNOTSUPP && nameless != -EISDIR) return nameless;
        std::string unique = name + "/bobbin-XXXXXX";
        const int named = ::mkostemp(unique.data(), O_CLOEXEC);
        if (named < 0) return -errno;
        ::unlink(unique.c_str());
        return named;
      }));
  return Adopt(static_cast<int>(fd), directory);
}

File File::Adopt(int fd, std::string_view path) {
  BOBBIN_CHECK(::fcntl(fd, F_GETFD) >= 0, "File::Adopt wants an open descriptor");
  return File(std::make_unique<OpenFile>(FileDescriptor(fd), path));
}

OpenFile& File::file() const {
  BOBBIN_CHECK(file_ != nullptr, "this File holds no file");
  return *file_;
}

absl::StatusOr<size_t> File::ReadAt(std::span<std::byte> buffer, uint64_t offset) {
  return file().ReadAt(std::span(&buffer, 1), offset);
}
absl::StatusOr<size_t> File::ReadAt(std::span<const std::span<std::byte>> buffers,
                                    uint64_t offset) {
  return file().ReadAt(buffers, offset);
}
absl::Status File::WriteAt(std::span<const std::byte> bytes, uint64_t offset) {
  return file().WriteAt(std::span(&bytes, 1), offset);
}
absl::Status File::WriteAt(std::span<const std::span<const std::byte>> parts, uint64_t offset) {
  return file().WriteAt(parts, offset);
}
absl::StatusOr<size_t> File::Read(std::span<std::byte> buffer) { return file().Read(buffer); }
absl::Status File::Write(std::span<const std::byte> bytes) { return file().Write(bytes); }
absl::Status File::Sync(SyncScope scope) { return file().Sync(scope); }
absl::StatusOr<FileStat> File::Stat() { return file().Stat(); }
absl::Status File::Resize(uint64_t size) { return file().Resize(size); }
const std::string& File::path() const { return file().path(); }

absl::Status File::Close() {
  absl::Status closed = file().Close();
  file_ = nullptr;
  return closed;
}

}  // namespace bobbin::io
