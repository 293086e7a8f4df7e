// SPDX-License-Identifier: Apache-2.0
//
// Handles: how a stream or a listener holds what others may still be in when it goes.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_INTERNAL_HANDLES_H_
#define BOBBIN_IO_INTERNAL_HANDLES_H_

#include <memory>

namespace bobbin::io::internal {

class DatagramQueue;
class Listener;
class Socket;
struct StreamAccess;

// Closes it; its memory goes when all are out.
struct ReleaseDatagramQueue {
  void operator()(DatagramQueue* queue) const noexcept;
};
struct ReleaseListener {
  void operator()(Listener* listener) const noexcept;
};
struct ReleaseSocket {
  void operator()(Socket* socket) const noexcept;
};

using DatagramQueueHandle = std::unique_ptr<DatagramQueue, ReleaseDatagramQueue>;
using ListenerHandle = std::unique_ptr<Listener, ReleaseListener>;
using SocketHandle = std::unique_ptr<Socket, ReleaseSocket>;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_INTERNAL_HANDLES_H_
