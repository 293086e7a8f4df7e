// SPDX-License-Identifier: Apache-2.0
//
// UnixStream: a connection within the machine, which takes descriptors along. UnixListener: where
// such connections come in.
//
// A name is a path, or, behind an `@`, an abstract name, which is in no folder and goes with its
// listener. (A path that begins so is written `./@`.)
//
//   Called from   As ByteStream. A listener takes any number of acceptors.
//   Suspends      Connect, Accept, reads and writes.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED, and no byte, no descriptor and no
//                 connection is lost.
//   Errors        As of ByteStream. NOT_FOUND: nobody ever had that name. UNAVAILABLE: nobody
//                 listens there any more, too. PERMISSION_DENIED: the path's permissions.
//                 INVALID_ARGUMENT: no name, too long a one, or a zero byte in a path.
//   Order         Acceptors are served first come, first served. Bytes and descriptors arrive in
//                 the order in which they were sent.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns,
//                 not longer.
//   Cost          As of ByteStream. Binding and closing a listener with a path are done on the
//   spot,
//                 by system calls that look the path up.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::UnixListener::Bind("/run/app.sock"));
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::io::UnixStream peer, listener.Accept());
//   BOBBIN_ASSIGN_OR_RETURN(const auto who, peer.PeerCredentials());

#ifndef BOBBIN_IO_UNIX_H_
#define BOBBIN_IO_UNIX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/byte_stream.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/internal/handles.h>

namespace bobbin::io {

// Who was on the other side when the connection was made, as the kernel knows it.
struct PeerCredentials {
  int64_t process = 0;
  uint32_t user = 0;
  uint32_t group = 0;
};

// What a read with descriptors has brought.
struct BytesWithDescriptors {
  size_t bytes = 0;  // 0: the peer has finished.
  std::vector<FileDescriptor> descriptors;
  // Whether there were more than this process may hold open; the rest is closed.
  bool has_lost_descriptors = false;
};

// What goes beyond ByteStream, which reads and writes. Where a read takes no descriptors, those
// that come along are closed.
class UnixStream : public ByteStream {
 public:
  // The most that the kernel lets go with one message.
  static constexpr size_t kDescriptorsMax = 253;

  // Holds nothing; to be assigned to.
  UnixStream() = default;

  // Connects. Where as many connect as the listener lets wait, it waits, too, and asks again after
  // a while: the kernel does not tell when there is room.
  static absl::StatusOr<UnixStream> Connect(std::string_view name);
  // Both ends of a new connection.
  static absl::StatusOr<std::pair<UnixStream, UnixStream>> Pair();
  // Takes over a connected stream socket. REQUIRES: nobody else uses the descriptor.
  static UnixStream Adopt(int fd);

  // As Read, and takes the descriptors that come along. They came with the first of the bytes: a
  // read ends before the next ones that have some. New descriptors are closed by exec.
  absl::StatusOr<BytesWithDescriptors> ReadWithDescriptors(std::span<std::byte> buffer);
  // Writes all of it. The descriptors go with the first byte; they stay open here, too. REQUIRES:
  // there are bytes. INVALID_ARGUMENT: more than kDescriptorsMax.
  absl::Status WriteAllWithDescriptors(std::span<const std::byte> bytes,
                                       std::span<const int> descriptors);

  absl::StatusOr<io::PeerCredentials> PeerCredentials() const;

 private:
  friend class UnixListener;
  friend struct internal::StreamAccess;
  explicit UnixStream(internal::SocketHandle socket) : ByteStream(std::move(socket)) {}
};

// What becomes of a path that is there already.
enum class TakenPath : uint8_t {
  kRefused,          // FAILED_PRECONDITION: it is in use.
  kReplacedIfStale,  // It is removed if it is a socket at which nobody listens.
};

struct UnixListenerOptions {
  // Connections that the kernel holds for this listener, besides those that are being accepted;
  // bounded by the sysctl net.core.somaxconn.
  int backlog = 4096;
  // Of the path, less the process's umask: who may write to it may connect.
  uint32_t permissions = 0777;
  TakenPath taken_path = TakenPath::kRefused;
};

class UnixListener {
 public:
  // Holds nothing; to be assigned to.
  UnixListener() = default;

  // Listens.
  static absl::StatusOr<UnixListener> Bind(std::string_view name,
                                           const UnixListenerOptions& options = {});

  // Waits for a connection. While the process has no descriptor left, it waits, too.
  absl::StatusOr<UnixStream> Accept();

  // Ends it, and removes its path, if that is still its own: acceptors return ABORTED, connections
  // that nobody has accepted are closed. Never waits.
  void Close();

  // As Bind was given it.
  const std::string& name() const;
  // Whether it holds a listening socket, open or closed.
  explicit operator bool() const { return listener_ != nullptr; }

 private:
  explicit UnixListener(internal::ListenerHandle listener) : listener_(std::move(listener)) {}
  internal::Listener& listener() const;

  internal::ListenerHandle listener_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_UNIX_H_
