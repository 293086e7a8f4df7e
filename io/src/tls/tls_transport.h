// SPDX-License-Identifier: Apache-2.0
//
// TlsTransport: TLS over a TcpStream, as HTTP's transport.
//
//   Called from   as Transport. Close: any thread.
//   Suspends      Read, ReadPooled, Write and ShutdownWrite.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED.
//   Errors        those of TlsStream.

#ifndef BOBBIN_IO_SRC_TLS_TLS_TRANSPORT_H_
#define BOBBIN_IO_SRC_TLS_TLS_TRANSPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/tcp.h>

#include "io/src/http/transport.h"
#include "io/src/tls/tls_channel.h"

namespace bobbin::io::internal {

class TlsTransport final : public http::internal::Transport {
 public:
  // What a read is told of an end that was not said. For a server it is one: clients leave as they
  // like, and a request says itself where it ends.
  enum class CutOff : uint8_t { kIsAnError, kIsAnEnd };

  // REQUIRES: `stream` outlives it, and `channel` is its own.
  TlsTransport(TcpStream& stream, std::unique_ptr<TlsChannel> channel, CutOff cut_off)
      : stream_(stream), channel_(std::move(channel)), cut_off_(cut_off) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> buffer) override {
    absl::StatusOr<size_t> read = channel_->Read(buffer);
    if (!read.ok() && cut_off_ == CutOff::kIsAnEnd && channel_->was_cut_off()) return size_t{0};
    return read;
  }
  absl::StatusOr<PooledBytes> ReadPooled() override {
    absl::StatusOr<PooledBytes> read = channel_->ReadPooled();
    if (!read.ok() && cut_off_ == CutOff::kIsAnEnd && channel_->was_cut_off()) return PooledBytes();
    return read;
  }
  absl::StatusOr<size_t> Write(std::string_view first, std::string_view second) override {
    const std::array parts = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
    return channel_->Write(parts);
  }
  absl::Status ShutdownWrite() override { return channel_->ShutdownWrite(); }
  void Close() override { channel_->Close(); }
  bool IsQuiet() const override { return channel_->IsDrained() && stream_.IsQuiet(); }

 private:
  TcpStream& stream_;
  const std::unique_ptr<TlsChannel> channel_;
  const CutOff cut_off_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_TLS_TRANSPORT_H_
