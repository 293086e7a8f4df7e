// SPDX-License-Identifier: Apache-2.0
//
// Transport: what HTTP needs of a connection. TcpTransport: a TcpStream as one.
//
// The layer above knows no sockets, so that another kind of connection is another class here.
//
//   Called from   one thread at a time.
//   Suspends      Read, ReadPooled and Write.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED; after that a Write has sent an
//                 unknown part.
//   Errors        those of the stream below.

#ifndef BOBBIN_IO_SRC_HTTP_TRANSPORT_H_
#define BOBBIN_IO_SRC_HTTP_TRANSPORT_H_

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/tcp.h>

namespace bobbin::io::http::internal {

class Transport {
 public:
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Waits until something comes and returns how much; 0 when the peer has finished.
  virtual absl::StatusOr<size_t> Read(std::span<std::byte> buffer) = 0;
  // The same, and waits without a buffer; empty when the peer has finished.
  virtual absl::StatusOr<PooledBytes> ReadPooled() = 0;
  // Waits until the peer's side takes something of `first` and then `second`, and returns how much.
  virtual absl::StatusOr<size_t> Write(std::string_view first, std::string_view second) = 0;
  // Tells the peer that nothing more will be written.
  virtual absl::Status ShutdownWrite() = 0;
  virtual void Close() = 0;
  // Whether it is open, and nothing has come that nobody has read. Never waits.
  virtual bool IsQuiet() const = 0;

 protected:
  Transport() = default;
};

class TcpTransport final : public Transport {
 public:
  // REQUIRES: `stream` outlives it.
  explicit TcpTransport(TcpStream& stream) : stream_(stream) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> buffer) override { return stream_.Read(buffer); }
  absl::StatusOr<PooledBytes> ReadPooled() override { return stream_.ReadPooled(); }
  absl::StatusOr<size_t> Write(std::string_view first, std::string_view second) override {
    const std::array parts = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
    return second.empty() ? stream_.Write(parts[0]) : stream_.Write(parts);
  }
  absl::Status ShutdownWrite() override { return stream_.ShutdownWrite(); }
  void Close() override { stream_.Close(); }
  bool IsQuiet() const override { return stream_.IsQuiet(); }

 private:
  TcpStream& stream_;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_TRANSPORT_H_
