// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/pipe.h>

#include "io/src/file_descriptor.h"
#include "io/src/result.h"
#include "io/src/socket.h"

namespace bobbin::io {

using internal::ResultStatus;
using internal::Socket;
using internal::SocketHandle;

namespace {

SocketHandle MakeEnd(FileDescriptor fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  BOBBIN_CHECK(flags >= 0, "Adopt wants an open descriptor");
  if ((flags & O_NONBLOCK) == 0) ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  return Socket::Make(std::move(fd), internal::ShortRead::kMayHideMore, Socket::Kind::kPipe);
}

absl::StatusOr<FileDescriptor> ReleaseEnd(Socket& end) {
  FileDescriptor released;
  {
    const Socket::Use use(end, Socket::User::kGuest);
    if (!use.ok()) return use.Refusal("release");
    released = FileDescriptor(::fcntl(end.fd(), F_DUPFD_CLOEXEC, 0));
    if (!released.is_open()) return ResultStatus(-errno, "release");
    ::fcntl(released.get(), F_SETFL, ::fcntl(released.get(), F_GETFL) & ~O_NONBLOCK);
  }
  end.Close();
  return released;
}

}  // namespace

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ResultStatus(-errno, "pipe");
  return Pipe{.reader = PipeReader::Adopt(FileDescriptor(ends[0])),
              .writer = PipeWriter::Adopt(FileDescriptor(ends[1]))};
}

// --- PipeReader

Socket& PipeReader::end() const {
  BOBBIN_CHECK(end_ != nullptr, "this PipeReader holds no end");
  return *end_;
}

PipeReader PipeReader::Adopt(FileDescriptor fd) { return PipeReader(MakeEnd(std::move(fd))); }

absl::StatusOr<size_t> PipeReader::Read(std::span<std::byte> buffer) { return end().Read(buffer); }

absl::Status PipeReader::ReadExact(std::span<std::byte> buffer) { return end().ReadExact(buffer); }

void PipeReader::Close() { end().Close(); }

absl::StatusOr<FileDescriptor> PipeReader::Release() { return ReleaseEnd(end()); }

// --- PipeWriter

Socket& PipeWriter::end() const {
  BOBBIN_CHECK(end_ != nullptr, "this PipeWriter holds no end");
  return *end_;
}

PipeWriter PipeWriter::Adopt(FileDescriptor fd) { return PipeWriter(MakeEnd(std::move(fd))); }

absl::StatusOr<size_t> PipeWriter::Write(std::span<const std::byte> bytes) {
  return end().Write(bytes);
}

absl::Status PipeWriter::WriteAll(std::span<const std::byte> bytes) {
  return end().WriteAll(bytes);
}

Progress PipeWriter::WriteCounted(std::span<const std::byte> bytes) {
  return end().WriteCounted(bytes);
}

void PipeWriter::Close() { end().Close(); }

absl::StatusOr<FileDescriptor> PipeWriter::Release() { return ReleaseEnd(end()); }

}  // namespace bobbin::io
