// SPDX-License-Identifier: Apache-2.0
//
// ByteStream: reading and writing, as TcpStream and UnixStream have it.
//
// For what takes either of them. One is made as one of the two, which say what goes beyond bytes.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. One reader and one writer at a time. Close: any
//                 thread at any time. Moving and destroying: nobody else may be about to begin a
//                 call.
//   Suspends      Read, Write and those built on them; WaitReadable.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What arrived all the same is returned
//                 instead: no byte is lost. A WriteAll or ReadExact that was ended has moved an
//                 unknown part; WriteCounted tells how much. On platform and foreign threads only a
//                 deadline ends a call that blocks.
//   Errors        ABORTED: this side has closed it. UNAVAILABLE: the peer reset, has gone, or does
//                 not answer. FAILED_PRECONDITION: a second reader or writer. OUT_OF_RANGE:
//                 ReadExact met the end. Everything else as errno's canonical code.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns,
//                 not longer.
//   Cost          A read: one entry in the carrier's ring, one park, no allocation. A write: the
//                 same, or one system call where no other virtual thread is ready. With epoll: one
//                 system call, and if that finds nothing a park and one more. ReadPooled: the same,
//                 and a buffer that changes hands. A connection at rest holds about 64 bytes here,
//                 besides the stack of who waits for it.
//
// Example:
//   absl::Status Echo(bobbin::io::ByteStream& peer) {
//     std::array<std::byte, 2048> buffer;
//     while (true) {
//       BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));
//       if (received == 0) return absl::OkStatus();
//       BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::span(buffer).first(received)));
//     }
//   }

#ifndef BOBBIN_IO_BYTE_STREAM_H_
#define BOBBIN_IO_BYTE_STREAM_H_

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/internal/handles.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/progress.h>

namespace bobbin::io {

class ByteStream {
 public:
  // Waits until something comes and returns how much; 0 when the peer has finished. An empty buffer
  // gets 0 at once.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  // The same for several buffers, which are filled one after another; how many is not limited.
  absl::StatusOr<size_t> Read(std::span<const std::span<std::byte>> buffers);
  // Fills `buffer`.
  absl::Status ReadExact(std::span<std::byte> buffer);
  // Waits without a buffer, and returns what has come in one of the carrier's; empty when the peer
  // has finished.
  absl::StatusOr<PooledBytes> ReadPooled();
  // Waits as a reader until a read would find something: bytes, the end or an error. Takes nothing.
  absl::Status WaitReadable();
  // Waits until the peer's side takes something and returns how much.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  absl::StatusOr<size_t> Write(std::span<const std::span<const std::byte>> parts);
  // Writes all of it.
  absl::Status WriteAll(std::span<const std::byte> bytes);
  absl::Status WriteAll(std::span<const std::span<const std::byte>> parts);
  // The same, and tells how much was written also if that was not all.
  Progress WriteCounted(std::span<const std::byte> bytes);
  Progress WriteCounted(std::span<const std::span<const std::byte>> parts);

  // Tells the peer that nothing more will be written. Reading goes on.
  absl::Status ShutdownWrite();
  // Ends the connection. Calls of other threads return ABORTED, from now on all calls do. Never
  // waits.
  void Close();

  // Whether it holds a connection, open or closed.
  explicit operator bool() const { return socket_ != nullptr; }

 protected:
  ByteStream() = default;
  explicit ByteStream(internal::SocketHandle socket) : socket_(std::move(socket)) {}
  ByteStream(ByteStream&&) = default;
  ByteStream& operator=(ByteStream&&) = default;
  ~ByteStream() = default;

  internal::Socket& socket() const;

 private:
  friend struct internal::StreamAccess;

  internal::SocketHandle socket_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_BYTE_STREAM_H_
