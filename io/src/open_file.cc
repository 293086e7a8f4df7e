// SPDX-License-Identifier: Apache-2.0

#include "io/src/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <bobbin/core/cancel.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>

#include "io/src/file_stat.h"
#include "io/src/limits.h"
#include "io/src/transfer.h"

namespace bobbin::io::internal {

using bobbin::internal::Current;
using bobbin::internal::Thread;

namespace {

size_t SizeOf(std::span<const std::span<std::byte>> buffers) {
  size_t bytes = 0;
  for (const auto& buffer : buffers) bytes += buffer.size();
  return bytes;
}

}  // namespace

OpenFile::~OpenFile() {
  // What the system has to say now, nobody asked for.
  if (fd_.is_open()) Close().IgnoreError();
}

Result OpenFile::ReadInline(std::span<const std::span<std::byte>> buffers, int64_t offset) {
  // relaxed: only saves a call.
  if (cannot_read_inline_.load(std::memory_order_relaxed)) return -EAGAIN;
  Transfer<std::byte> transfer(buffers);
  const std::span<const iovec> vectors = transfer.Next(File::kInlineBytesMax);
  const ssize_t got = ::preadv2(fd_.get(), vectors.data(), static_cast<int>(vectors.size()),
                                offset, RWF_NOWAIT);
  const int error = got < 0 ? errno : 0;
  if (got >= 0) return got;
  if (error == EOPNOTSUPP || error == ENOSYS) {
    cannot_read_inline_.store(true, std::memory_order_relaxed);  // relaxed: as above.
  }
  return -EAGAIN;
}

absl::StatusOr<size_t> OpenFile::ReadAt(std::span<const std::span<std::byte>> buffers,
                                        uint64_t offset) {
  Thread& self = Current();
  self.CheckMayWait();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  const Use use(*this);
  Transfer<std::byte> transfer(buffers);
  if (transfer.is_done()) return size_t{0};
  if (self.role() == Role::kVirtual && SizeOf(buffers) <= File::kInlineBytesMax) {
    const Result got = ReadInline(buffers, static_cast<int64_t>(offset));
    if (got == 0) return size_t{0};
    if (got > 0) transfer.Advance(static_cast<size_t>(got));
    if (transfer.is_done()) return transfer.moved();
  }
  return RunFileCall(Trying("read"), [&](InterruptibleCall& call) -> Result {
    while (!transfer.is_done()) {
      const std::span<const iovec> vectors = transfer.Next(kFilePieceBytes);
      const Result got = call.Run(SYS_preadv, fd_.get(), vectors.data(), vectors.size(),
                                  offset + transfer.moved(), 0);
      if (got < 0) return got;
      if (got == 0) break;
      transfer.Advance(static_cast<size_t>(got));
    }
    return static_cast<Result>(transfer.moved());
  });
}

absl::Status OpenFile::WriteAt(std::span<const std::span<const std::byte>> parts,
                               uint64_t offset) {
  const Use use(*this);
  Transfer<const std::byte> transfer(parts);
  return RunFileCall(Trying("write"), [&](InterruptibleCall& call) -> Result {
           while (!transfer.is_done()) {
             const std::span<const iovec> vectors = transfer.Next(kFilePieceBytes);
             const Result put = call.Run(SYS_pwritev, fd_.get(), vectors.data(), vectors.size(),
                                         offset + transfer.moved(), 0);
             if (put < 0) return put;
             transfer.Advance(static_cast<size_t>(put));
           }
           return 0;
         })
      .status();
}

absl::StatusOr<size_t> OpenFile::Read(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  const Use use(*this);
  if (buffer.empty()) return size_t{0};
  if (self.role() == Role::kVirtual && buffer.size() <= File::kInlineBytesMax) {
    const Result got = ReadInline(std::span(&buffer, 1), -1);
    if (got >= 0) return static_cast<size_t>(got);
  }
  const size_t bytes = std::min(buffer.size(), kTransferBytesMax);
  return RunFileCall(Trying("read"), [&](InterruptibleCall& call) -> Result {
    return call.Run(SYS_read, fd_.get(), buffer.data(), bytes);
  });
}

absl::Status OpenFile::Write(std::span<const std::byte> bytes) {
  const Use use(*this);
  return RunFileCall(Trying("write"), [&](InterruptibleCall& call) -> Result {
           // Up to its bound at once: an append is one piece.
           while (!bytes.empty()) {
             const Result put = call.Run(SYS_write, fd_.get(), bytes.data(),
                                         std::min(bytes.size(), kTransferBytesMax));
             if (put < 0) return put;
             bytes = bytes.subspan(static_cast<size_t>(put));
           }
           return 0;
         })
      .status();
}

absl::Status OpenFile::Sync(SyncScope scope) {
  const Use use(*this);
  const long number = scope == SyncScope::kData ? SYS_fdatasync : SYS_fsync;
  return RunFileCall(
             Trying("sync"),
             [&](InterruptibleCall& call) -> Result { return call.Run(number, fd_.get()); },
             BlockingLane::kSync)
      .status();
}

absl::StatusOr<FileStat> OpenFile::Stat() {
  const Use use(*this);
  struct statx found {};
  BOBBIN_RETURN_IF_ERROR(RunFileCall(Trying("stat"), [&](InterruptibleCall& call) -> Result {
                           return call.Run(SYS_statx, fd_.get(), "", AT_EMPTY_PATH,
                                           STATX_BASIC_STATS, &found);
                         }).status());
  return FromStatx(found);
}

absl::Status OpenFile::Resize(uint64_t size) {
  const Use use(*this);
  return RunFileCall(Trying("resize"), [&](InterruptibleCall& call) -> Result {
           return call.Run(SYS_ftruncate, fd_.get(), size);
         })
      .status();
}

absl::Status OpenFile::Close() {
  BOBBIN_CHECK(fd_.is_open(), "a file is closed twice");
  // Pairs with the release of the last user.
  BOBBIN_CHECK(users_.load(std::memory_order_acquire) == 0, "a file is closed while it is used");
  return RunFileCallAlways(Trying("close"), [this](InterruptibleCall&) -> Result {
    // Not to be repeated: the number is free, whatever the answer is.
    const int closed = ::close(fd_.Release());
    const int error = closed == 0 ? 0 : errno;
    return error == EINTR ? 0 : -error;
  });
}

}  // namespace bobbin::io::internal
