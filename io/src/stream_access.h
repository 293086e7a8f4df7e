// SPDX-License-Identifier: Apache-2.0
//
// StreamAccess: lets the layers above sockets at what is below a stream.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_STREAM_ACCESS_H_
#define BOBBIN_IO_SRC_STREAM_ACCESS_H_

#include <utility>

#include <bobbin/io/byte_stream.h>
#include <bobbin/io/tcp.h>
#include <bobbin/io/unix.h>

#include "io/src/socket.h"

namespace bobbin::io::internal {

struct StreamAccess {
  static Socket& SocketOf(const ByteStream& stream) { return stream.socket(); }
  // The same connection. A TcpStream may be of any family.
  static TcpStream AsTcp(UnixStream stream) { return TcpStream(std::move(stream.socket_)); }
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_STREAM_ACCESS_H_
