// SPDX-License-Identifier: Apache-2.0
//
// TcpStream: a connection. TcpListener: where connections come in.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. A stream takes one reader and one writer at a time,
//                 a listener any number of acceptors. Close: any thread at any time. Moving and
//                 destroying: nobody else may be about to begin a call.
//   Suspends      Connect, Accept, Read, Write and those built on them.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What arrived all the same is returned
//                 instead: no byte and no connection is lost. A WriteAll or ReadExact that was
//                 ended has moved an unknown part. On platform and foreign threads only a deadline
//                 ends a call that blocks.
//   Errors        ABORTED: this side has closed it. UNAVAILABLE: the peer reset, has gone, does not
//                 answer or refuses. FAILED_PRECONDITION: a second reader or writer. OUT_OF_RANGE:
//                 ReadExact met the end. INVALID_ARGUMENT: the text is no address. Everything else
//                 as errno's canonical code.
//   Order         Acceptors are served first come, first served.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns,
//                 not longer.
//   Cost          A read: one entry in the carrier's ring, one park, no allocation. A write: the
//                 same, or one system call where no other virtual thread is ready. With epoll: one
//                 system call, and if that finds nothing a park and one more. A connection at rest
//                 holds about 64 bytes here, besides the stack of who waits for it.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:7000"));
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::io::TcpStream peer, listener.Accept());
//   BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));
//   BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::span(buffer).first(received)));

#ifndef BOBBIN_IO_TCP_H_
#define BOBBIN_IO_TCP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/address.h>

namespace bobbin::io {

namespace internal {
class Listener;
class Socket;
struct ReleaseListener {
  void operator()(Listener* listener) const noexcept;
};
struct ReleaseSocket {
  void operator()(Socket* socket) const noexcept;
};
}  // namespace internal

// When a small write goes out.
enum class SmallWrites : uint8_t {
  kAtOnce,    // Without delay.
  kGathered,  // With others, when the peer has acknowledged what went before (Nagle's algorithm).
};

class TcpStream {
 public:
  // Holds nothing; to be assigned to.
  TcpStream() = default;

  // Connects. The text is `host:port`, numeric (see address.h).
  static absl::StatusOr<TcpStream> Connect(const SocketAddress& peer);
  static absl::StatusOr<TcpStream> Connect(std::string_view peer);
  static absl::StatusOr<TcpStream> Connect(std::string_view host, uint16_t port);
  // Takes over a connected stream socket, of any family. REQUIRES: nobody else uses the descriptor.
  static TcpStream Adopt(int fd);

  // Waits until something comes and returns how much; 0 when the peer has finished. An empty buffer
  // gets 0 at once.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  // Fills `buffer`.
  absl::Status ReadExact(std::span<std::byte> buffer);
  // Waits until the peer's side takes something and returns how much.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  // Writes all of it.
  absl::Status WriteAll(std::span<const std::byte> bytes);

  // Tells the peer that nothing more will be written. Reading goes on.
  absl::Status ShutdownWrite();
  // Has reads meet the end, also one that waits now; but first they get what has come.
  absl::Status ShutdownRead();
  // Ends the connection. Calls of other threads return ABORTED, from now on all calls do. Never
  // waits.
  void Close();

  // Connect and Accept begin with kAtOnce.
  absl::Status SetSmallWrites(SmallWrites small_writes);

  absl::StatusOr<SocketAddress> local_address() const;
  absl::StatusOr<SocketAddress> peer_address() const;
  // Whether it holds a connection, open or closed.
  explicit operator bool() const { return socket_ != nullptr; }

 private:
  friend class TcpListener;
  explicit TcpStream(internal::Socket* socket) : socket_(socket) {}
  internal::Socket& socket() const;

  std::unique_ptr<internal::Socket, internal::ReleaseSocket> socket_;
};

struct TcpListenerOptions {
  // Connections that the kernel holds for this listener, besides those that are being accepted;
  // bounded by the sysctl net.core.somaxconn.
  int backlog = 4096;
  // Lets several listeners bind the address; the kernel deals connections out by a hash.
  bool reuse_port = false;
};

class TcpListener {
 public:
  // Holds nothing; to be assigned to.
  TcpListener() = default;

  // Listens. Port 0 takes a free one: local_address() tells which.
  static absl::StatusOr<TcpListener> Bind(const SocketAddress& local,
                                          const TcpListenerOptions& options = {});
  static absl::StatusOr<TcpListener> Bind(std::string_view local,
                                          const TcpListenerOptions& options = {});

  // Waits for a connection. While the process has no descriptor left, it waits, too.
  absl::StatusOr<TcpStream> Accept();

  // Ends it: acceptors return ABORTED, connections that nobody has accepted are closed. Never
  // waits.
  void Close();

  const SocketAddress& local_address() const;
  // How often it has stood still for want of descriptors or memory. The first time is told on
  // standard error.
  uint64_t accept_pauses() const;
  // Whether it holds a listening socket, open or closed.
  explicit operator bool() const { return listener_ != nullptr; }

 private:
  explicit TcpListener(internal::Listener* listener) : listener_(listener) {}
  internal::Listener& listener() const;

  std::unique_ptr<internal::Listener, internal::ReleaseListener> listener_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TCP_H_
