// SPDX-License-Identifier: Apache-2.0
//
// TcpStream: a connection. TcpListener: where connections come in.
//
//   Called from   As ByteStream. A listener takes any number of acceptors.
//   Suspends      Connect, Accept, and what reads and writes.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED; no byte and no connection is lost.
//   Errors        As of ByteStream. UNAVAILABLE: nobody listens there, too, or the host cannot be
//                 reached. INVALID_ARGUMENT: the text is no address, and no name. Of names as
//                 Resolver has it.
//   Order         Acceptors are served first come, first served.
//   Lifetime      Closed by the destructor.
//   Cost          As of ByteStream. A connect, and an accept that has to wait: one entry in the
//                 carrier's ring and one park.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:7000"));
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::io::TcpStream peer, listener.Accept());
//   BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));
//   BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::span(buffer).first(received)));

#ifndef BOBBIN_IO_TCP_H_
#define BOBBIN_IO_TCP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/io/byte_stream.h>
#include <bobbin/io/internal/handles.h>
#include <bobbin/io/progress.h>
#include <bobbin/io/resolver.h>

namespace bobbin::io {

// When a small write goes out.
enum class SmallWrites : uint8_t {
  kAtOnce,    // Without delay.
  kGathered,  // With others, when the peer has acknowledged what went before (Nagle's algorithm).
};

// What becomes of what was written when a stream is closed. A close waits for nobody: who wants to
// know that all has arrived shuts the writing down and reads on until the peer has finished, too.
enum class OnClose : uint8_t {
  kDeliver,  // The system goes on to send it, and ends properly.
  kReset,    // It is thrown away, and the peer is told of a reset.
};

// A peer of which nothing comes is asked now and then whether it is still there.
struct KeepAlive {
  std::chrono::seconds idle{60};      // After so long a silence,
  std::chrono::seconds interval{15};  // and then so often;
  int questions_max = 4;              // after so many in vain the connection has failed.
};

struct TcpOptions {
  SmallWrites small_writes = SmallWrites::kAtOnce;
  // Nothing: a peer that has vanished is not missed as long as nothing is written.
  std::optional<KeepAlive> keep_alive = std::nullopt;
  // How long what was written may stay without an acknowledgement before the connection has failed
  // (TCP_USER_TIMEOUT). Zero: the system's 15 minutes or so.
  std::chrono::milliseconds unanswered_max{0};
  // What the system may hold for either direction. Zero: as much as it finds good, which grows with
  // the connection's speed; a stream that was given a size keeps it. To be of use for more than
  // 64 KiB, a size for receiving has to be known before the connection is made.
  size_t receive_buffer_bytes = 0;
  size_t send_buffer_bytes = 0;
  OnClose on_close = OnClose::kDeliver;
};

struct ConnectOptions {
  // Who knows the addresses of names; null: Resolver::Default().
  Resolver* resolver = nullptr;
  Families families = Families::kBoth;
  SearchList search = SearchList::kUsed;
  // How long an address has to itself before the next one is tried, too.
  std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds(250);
  TcpOptions tcp = {};
};

// What goes beyond ByteStream, which reads and writes.
class TcpStream : public ByteStream {
 public:
  // Holds nothing; to be assigned to.
  TcpStream() = default;

  // Connects. The text is `host:port` (see host_port.h).
  static absl::StatusOr<TcpStream> Connect(const SocketAddress& peer,
                                           const TcpOptions& options = {});
  static absl::StatusOr<TcpStream> Connect(std::string_view peer, const TcpOptions& options = {});
  // To a numeric host, or to that address of a name which answers first (RFC 8305): they are tried
  // one after the other, the families in turn, and the next one also begins when the one before
  // takes too long. The others are closed when it returns. If none can be connected to, the error
  // has what became of each.
  static absl::StatusOr<TcpStream> Connect(std::string_view host, uint16_t port,
                                           const TcpOptions& options = {});
  static absl::StatusOr<TcpStream> Connect(const ConnectOptions& options, std::string_view host,
                                           uint16_t port);
  // Takes over a connected stream socket, of any family. One that would wait for the peer when it
  // is closed will not do so. REQUIRES: nobody else uses the descriptor.
  static TcpStream Adopt(int fd);

  // As WriteCounted, and the system sends the bytes from where they are, without a copy (SEND_ZC).
  // It returns when the system has let go of them, that is when the peer has acknowledged them: a
  // cancel, a deadline and a Close end the sending, but not the waiting for what was sent, which
  // TcpOptions::unanswered_max bounds. For large writes over a network: each has the cost of a
  // notification and of a round trip. On the machine itself, with epoll, and where the system has
  // no memory for it, they are copied all the same, and PollerStatistics::copied_sends counts that;
  // a write to the same machine then takes 1.2 times (4 KiB) to 1.8 times (1 MiB) as long.
  Progress WriteZeroCopy(std::span<const std::byte> bytes);

  // Has reads meet the end, also one that waits now; but first they get what has come.
  absl::Status ShutdownRead();
  // Whether it is open, and nothing has come that nobody has read, also no end: if a connection was
  // kept between two requests, whether it can be used for the next. Never waits.
  bool IsQuiet() const;

  // Sets all of them, at any time. To change one: take options(), and set them with the one
  // changed.
  absl::Status SetOptions(const TcpOptions& options);
  absl::StatusOr<TcpOptions> options() const;

  absl::StatusOr<SocketAddress> local_address() const;
  absl::StatusOr<SocketAddress> peer_address() const;

 private:
  friend class TcpListener;
  friend struct internal::StreamAccess;
  explicit TcpStream(internal::SocketHandle socket) : ByteStream(std::move(socket)) {}
};

struct TcpListenerOptions {
  // Connections that the kernel holds for this listener, besides those that are being accepted;
  // bounded by the sysctl net.core.somaxconn.
  int backlog = 4096;
  // Lets several listeners bind the address; the kernel deals connections out by a hash.
  bool reuse_port = false;
  // What accepted streams begin with.
  TcpOptions streams = {};
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
  // How often it has stood still for want of descriptors or memory. The first time is a line of the
  // log (sched/log.h).
  uint64_t accept_pauses() const;
  // Whether it holds a listening socket, open or closed.
  explicit operator bool() const { return listener_ != nullptr; }

 private:
  TcpListener(internal::ListenerHandle listener, const SocketAddress& local_address)
      : listener_(std::move(listener)), local_address_(local_address) {}
  internal::Listener& listener() const;

  internal::ListenerHandle listener_;
  SocketAddress local_address_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TCP_H_
