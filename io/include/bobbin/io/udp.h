// SPDX-License-Identifier: Apache-2.0
//
// UdpSocket: sends and receives datagrams.
//
// A datagram arrives whole, or cut to the buffer, or not at all; nobody tells the sender.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. One thread receives at a time, any number send.
//                 Close: any thread at any time. Moving and destroying: nobody else may be about to
//                 begin a call.
//   Suspends      Receive and ReceiveBatch, unless something is there; Send and SendTo, if the
//                 system has no room.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What arrived all the same is returned
//                 instead: no datagram is lost that way.
//   Errors        ABORTED: this side has closed it. FAILED_PRECONDITION: a second receiver.
//                 UNAVAILABLE, only of a connected socket: the peer's machine has said that nobody
//                 is there. It says so of a datagram that was sent before: the call that is told
//                 has done nothing else, the next one goes on. Everything else as errno's canonical
//                 code; INVALID_ARGUMENT: the text is no address.
//   Order         as the system received them, which need not be as they were sent.
//   Lifetime      Closed by the destructor. The buffers of a call must live until the call returns,
//                 not longer.
//   Cost          One system call, and if that finds nothing a park and one more; ReceiveBatch the
//                 same for all of its datagrams. No allocation. Received ahead, on a ring: no
//                 system call of its own, a copy of the bytes, and a buffer of the carrier's for
//                 each that nobody has taken yet, 64 or so at most.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto socket, bobbin::io::UdpSocket::Bind("0.0.0.0:5353"));
//   BOBBIN_ASSIGN_OR_RETURN(const bobbin::io::Datagram question, socket.Receive(buffer));
//   BOBBIN_RETURN_IF_ERROR(socket.SendTo(answer, question.peer));

#ifndef BOBBIN_IO_UDP_H_
#define BOBBIN_IO_UDP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/io/internal/handles.h>

namespace bobbin::io {

// What was received into a buffer.
struct Datagram {
  size_t bytes = 0;  // May be none: a datagram can be empty.
  // Whether there was more than the buffer had room for; that is gone.
  bool is_truncated = false;
  SocketAddress peer;
};

// A place for one of a batch.
struct DatagramSlot {
  std::span<std::byte> buffer;
  Datagram datagram;
};

// Who asks the system for datagrams.
enum class Receiving : uint8_t {
  kOnCall,  // Each call asks for its own.
  // For servers. From the first call on a ring receives without being asked again, some 64
  // datagrams ahead of the calls. One longer than UdpSocket::kAheadBytesMax is cut. What nobody has
  // taken when the socket is closed is gone, as is what the system holds. With epoll, and where
  // buffers are short, as kOnCall.
  kAhead,
};

struct UdpOptions {
  Receiving receiving = Receiving::kOnCall;
  // Lets several sockets bind the address; the kernel deals datagrams out by a hash of their
  // addresses.
  bool reuse_port = false;
  // Lets it send to broadcast addresses.
  bool may_broadcast = false;
  // What the system may hold for either direction; zero: its default. What comes when there is no
  // room is thrown away. Bounded by the sysctls net.core.rmem_max and net.core.wmem_max.
  size_t receive_buffer_bytes = 0;
  size_t send_buffer_bytes = 0;
};

class UdpSocket {
 public:
  // Datagrams that one system call brings, at most.
  static constexpr size_t kBatchMax = 16;
  // What fits into one of the carrier's buffers, beside the peer's address.
  static constexpr size_t kAheadBytesMax = 4052;

  // Holds nothing; to be assigned to.
  UdpSocket() = default;

  // Receives from everybody. Port 0 takes a free one: local_address() tells which.
  static absl::StatusOr<UdpSocket> Bind(const SocketAddress& local, const UdpOptions& options = {});
  static absl::StatusOr<UdpSocket> Bind(std::string_view local, const UdpOptions& options = {});
  // Sends to one peer, receives from that one only, and is told if the peer's machine says that
  // nobody is there. Never waits.
  static absl::StatusOr<UdpSocket> Connect(const SocketAddress& peer,
                                           const UdpOptions& options = {});
  static absl::StatusOr<UdpSocket> Connect(std::string_view peer, const UdpOptions& options = {});

  // Waits for a datagram.
  absl::StatusOr<Datagram> Receive(std::span<std::byte> buffer);
  // Waits for one, and takes as many as are there by then, up to kBatchMax and the number of slots,
  // which are filled from the first on. Returns how many. REQUIRES: there are slots.
  absl::StatusOr<size_t> ReceiveBatch(std::span<DatagramSlot> slots);

  // Sends one datagram to where it is connected.
  absl::Status Send(std::span<const std::byte> bytes);
  // Sends one anywhere.
  absl::Status SendTo(std::span<const std::byte> bytes, const SocketAddress& peer);

  // Ends it. Calls of other threads return ABORTED, from now on all calls do. Never waits.
  void Close();

  absl::StatusOr<SocketAddress> local_address() const;
  // Whether it holds a socket, open or closed.
  explicit operator bool() const { return socket_ != nullptr; }

 private:
  UdpSocket(internal::SocketHandle socket, Receiving receiving);
  internal::Socket& socket() const;

  internal::DatagramQueueHandle ahead_;  // With kAhead; it goes when the socket is closed.
  internal::SocketHandle socket_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_UDP_H_
