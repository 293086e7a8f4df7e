// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>

#include <bobbin/core/check.h>
#include <bobbin/io/byte_stream.h>

#include "io/src/socket.h"

namespace bobbin::io {

internal::Socket& ByteStream::socket() const {
  BOBBIN_CHECK(socket_ != nullptr, "this stream holds no connection");
  return *socket_;
}

absl::StatusOr<size_t> ByteStream::Read(std::span<std::byte> buffer) {
  return socket().Read(buffer);
}

absl::StatusOr<size_t> ByteStream::Read(std::span<const std::span<std::byte>> buffers) {
  return socket().Read(buffers);
}

absl::Status ByteStream::ReadExact(std::span<std::byte> buffer) {
  return socket().ReadExact(buffer);
}

absl::StatusOr<PooledBytes> ByteStream::ReadPooled() { return socket().ReadPooled(); }

absl::Status ByteStream::WaitReadable() { return socket().WaitReadable(); }

absl::StatusOr<size_t> ByteStream::Write(std::span<const std::byte> bytes) {
  return socket().Write(bytes);
}

absl::StatusOr<size_t> ByteStream::Write(std::span<const std::span<const std::byte>> parts) {
  return socket().Write(parts);
}

absl::Status ByteStream::WriteAll(std::span<const std::byte> bytes) {
  return socket().WriteAll(bytes);
}

absl::Status ByteStream::WriteAll(std::span<const std::span<const std::byte>> parts) {
  return socket().WriteCounted(parts).status;
}

Progress ByteStream::WriteCounted(std::span<const std::byte> bytes) {
  return socket().WriteCounted(bytes);
}

Progress ByteStream::WriteCounted(std::span<const std::span<const std::byte>> parts) {
  return socket().WriteCounted(parts);
}

absl::Status ByteStream::ShutdownWrite() { return socket().Shutdown(SHUT_WR); }

void ByteStream::Close() { socket().Close(); }

}  // namespace bobbin::io
