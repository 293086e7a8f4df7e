// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/unix.h>
#include <bobbin/sched/sleep.h>

#include "io/src/file_descriptor.h"
#include "io/src/limits.h"
#include "io/src/listener.h"
#include "io/src/result.h"
#include "io/src/socket.h"
#include "io/src/unix_name.h"

namespace bobbin::io {

using bobbin::internal::Current;
using bobbin::internal::Thread;
using internal::BoundPath;
using internal::Listener;
using internal::ListenerHandle;
using internal::Result;
using internal::ResultStatus;
using internal::ShortRead;
using internal::Socket;
using internal::UnixName;
using Use = internal::Socket::Use;
using User = internal::Socket::User;

namespace {

// Room for the most descriptors that can come along.
struct ControlBuffer {
  alignas(
      cmsghdr) std::array<std::byte, CMSG_SPACE(UnixStream::kDescriptorsMax * sizeof(int))> bytes{};
};

// A read may end where descriptors came along.
constexpr ShortRead kShortRead = ShortRead::kMayHideMore;

// 0 when connected.
Result ConnectPatiently(int fd, const UnixName& name) {
  std::chrono::milliseconds pause = internal::kConnectPauseMin;
  while (true) {
    const int error = ::connect(fd, name.data(), name.bytes()) == 0 ? 0 : errno;
    if (error == EINTR) continue;
    if (error != EAGAIN) return -error;
    if (const absl::Status status = SleepFor(pause); !status.ok()) {
      return absl::IsDeadlineExceeded(status) ? internal::kStoppedByDeadline
                                              : internal::kStoppedByCancel;
    }
    pause = std::min(pause * 2, internal::kConnectPauseMax);
  }
}

// Binds; 0 if that is done.
Result BindName(int fd, const UnixName& name, TakenPath taken_path) {
  const auto bind = [&] { return ::bind(fd, name.data(), name.bytes()) == 0 ? 0 : -errno; };
  const Result result = bind();
  if (result != -EADDRINUSE || taken_path == TakenPath::kRefused || name.path().empty()) {
    return result;
  }
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return -errno;
  // Of a file that is no socket the system says the same.
  struct stat found {};
  const bool is_socket = ::lstat(name.path().c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
  const bool is_stale =
      ::connect(probe.get(), name.data(), name.bytes()) != 0 && errno == ECONNREFUSED;
  if (!is_socket || !is_stale) return result;
  ::unlink(name.path().c_str());
  return bind();
}

}  // namespace

// --- UnixStream

absl::StatusOr<UnixStream> UnixStream::Connect(std::string_view name) {
  Thread& self = Current();
  self.CheckMayWait();
  if (self.ShouldStop()) return self.StopStatus();
  BOBBIN_ASSIGN_OR_RETURN(const UnixName address, UnixName::Parse(name));
  const auto failed = [&](Result result) {
    return ResultStatus(result, fmt::format("connect {}", name));
  };
  FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return failed(-errno);
  if (const Result result = ConnectPatiently(fd.get(), address); result < 0) return failed(result);
  return Adopt(fd.Release());
}

absl::StatusOr<std::pair<UnixStream, UnixStream>> UnixStream::Pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ResultStatus(-errno, "socket pair");
  }
  return std::pair(UnixStream(Socket::Make(FileDescriptor(ends[0]), kShortRead)),
                   UnixStream(Socket::Make(FileDescriptor(ends[1]), kShortRead)));
}

UnixStream UnixStream::Adopt(int fd) { return UnixStream(Socket::Adopt(fd)); }

absl::StatusOr<BytesWithDescriptors> UnixStream::ReadWithDescriptors(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();  // The handle may go while this waits.
  const Use use(socket, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  BytesWithDescriptors read;
  if (buffer.empty()) return read;
  iovec part{.iov_base = buffer.data(),
             .iov_len = std::min(buffer.size(), internal::kTransferBytesMax)};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const Result received = socket.ReceiveMessage(self, message, part.iov_len);
  if (received <= 0) {
    BOBBIN_RETURN_IF_ERROR(socket.AfterReceive(received).status());
    return read;
  }
  read.bytes = static_cast<size_t>(received);
  read.has_lost_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
      read.descriptors.emplace_back(fd);
    }
  }
  return read;
}

absl::Status UnixStream::WriteAllWithDescriptors(std::span<const std::byte> bytes,
                                                 std::span<const int> descriptors) {
  BOBBIN_CHECK(!bytes.empty(), "descriptors go with a byte, and there is none");
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();  // The handle may go while this waits.
  const Use use(socket, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  if (descriptors.size() > kDescriptorsMax) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("write: more than {} descriptors", kDescriptorsMax));
  }
  ControlBuffer control;
  bool is_first = !descriptors.empty();
  while (!bytes.empty()) {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()),
               .iov_len = std::min(bytes.size(), internal::kTransferBytesMax)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (std::exchange(is_first, false)) {
      message.msg_control = control.bytes.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    const Result sent = socket.SendMessage(self, message, part.iov_len);
    if (sent < 0) return socket.AfterSend(sent);
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<PeerCredentials> UnixStream::PeerCredentials() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("peer credentials");
  ucred found{};
  socklen_t bytes = sizeof(found);
  if (::getsockopt(socket().fd(), SOL_SOCKET, SO_PEERCRED, &found, &bytes) != 0) {
    return ResultStatus(-errno, "peer credentials");
  }
  return io::PeerCredentials{.process = found.pid, .user = found.uid, .group = found.gid};
}

// --- UnixListener

Listener& UnixListener::listener() const {
  BOBBIN_CHECK(listener_ != nullptr, "this UnixListener holds no socket");
  return *listener_;
}

absl::StatusOr<UnixListener> UnixListener::Bind(std::string_view name,
                                                const UnixListenerOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const UnixName address, UnixName::Parse(name));
  const auto failed = [&](Result result) {
    return ResultStatus(result, fmt::format("listen {}", name));
  };
  FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return failed(-errno);
  // The path gets the socket's own permissions, from the first moment on.
  if (::fchmod(fd.get(), options.permissions) != 0) return failed(-errno);
  if (const Result result = BindName(fd.get(), address, options.taken_path); result < 0) {
    return failed(result);
  }
  BoundPath path(address.path());
  if (::listen(fd.get(), options.backlog) != 0) {
    const int error = errno;
    path.Remove();
    return failed(-error);
  }
  ListenerHandle listener(std::make_unique<Listener>(std::move(fd), std::string(name),
                                                     Listener::Shutdown::kIsNotNoticed,
                                                     std::move(path))
                              .release());
  return UnixListener(std::move(listener));
}

absl::StatusOr<UnixStream> UnixListener::Accept() {
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd, listener().Accept());
  return UnixStream(Socket::Make(std::move(fd), kShortRead));
}

void UnixListener::Close() { listener().Close(); }

const std::string& UnixListener::name() const { return listener().name(); }

}  // namespace bobbin::io
