// SPDX-License-Identifier: Apache-2.0

#include "io/src/ring_probe.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>

#include "io/src/file_descriptor.h"

namespace bobbin::io::internal {

namespace {

// What a kernel that works answers at once.
constexpr std::chrono::seconds kPatience{2};

constexpr uint64_t kReceive = 1, kCancel = 2, kAccept = 3;

absl::Status DoesNot(std::string_view what) {
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    fmt::format("io_uring: this kernel does not {}", what));
}

class RingProbe {
 public:
  absl::Status Run(Ring::Entries entries) {
    BOBBIN_RETURN_IF_ERROR(ring_.Open(entries));
    absl::Status status = TryReceiveAndCancel();
    if (status.ok()) status = TryAccept();
    ring_.Disown();
    return status;
  }

 private:
  absl::Status TryReceiveAndCancel() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus(errno, "io_uring: probe");
    }
    const FileDescriptor left(ends[0]);
    const FileDescriptor right(ends[1]);
    Receive(left.get());
    ring_.Collect();
    const std::byte byte{1};
    if (::send(right.get(), &byte, 1, MSG_NOSIGNAL) != 1) return DoesNot("send");
    const auto received = Await(kReceive);
    if (!received.has_value() || received->result != 1) return DoesNot("receive");

    Receive(left.get());
    Cancel(kReceive);
    const auto cancelled = Await(kReceive);
    if (!cancelled.has_value() || cancelled->result != -ECANCELED) return DoesNot("cancel");
    return absl::OkStatus();
  }

  absl::Status TryAccept() {
    const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    // The system chooses a name that is in no folder.
    socklen_t bytes = sizeof(address.sun_family);
    if (!listener.is_open() || ::bind(listener.get(), any, bytes) != 0 ||
        ::listen(listener.get(), 2) != 0) {
      return ErrnoStatus(errno, "io_uring: probe");
    }
    bytes = sizeof(address);
    ::getsockname(listener.get(), any, &bytes);

    io_uring_sqe* const entry = ring_.NextEntry();
    io_uring_prep_multishot_accept(entry, listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    entry->user_data = kAccept;
    ring_.Collect();
    for (int i = 0; i < 2; ++i) {
      const FileDescriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(client.get(), any, bytes) != 0) return ErrnoStatus(errno, "io_uring: probe");
      const auto answer = Await(kAccept);
      if (!answer.has_value()) return DoesNot("accept");
      if (answer->result < 0) return ErrnoStatus(-answer->result, "io_uring: probe: accept");
      const FileDescriptor accepted(answer->result);
      if (!answer->goes_on) return DoesNot("go on accepting");
    }
    Cancel(kAccept);
    const auto end = Await(kAccept);
    if (!end.has_value() || end->goes_on) return DoesNot("end an accept");
    return absl::OkStatus();
  }

  void Receive(int fd) {
    io_uring_sqe* const entry = ring_.NextEntry();
    io_uring_prep_recv(entry, fd, &buffer_, sizeof(buffer_), 0);
    entry->user_data = kReceive;
  }

  void Cancel(uint64_t user_data) {
    io_uring_sqe* const entry = ring_.NextEntry();
    io_uring_prep_cancel64(entry, user_data, 0);
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data = kCancel;
  }

  struct Answer {
    int32_t result;
    bool goes_on;
  };
  // The next answer to that operation; nothing if none comes.
  std::optional<Answer> Await(uint64_t user_data) {
    const Deadline deadline = Deadline::After(kPatience);
    while (true) {
      while (ring_.completions() != 0) {
        const io_uring_cqe& completion = ring_.completion(0);
        const uint64_t of = completion.user_data;
        const Answer answer{.result = completion.res,
                            .goes_on = (completion.flags & IORING_CQE_F_MORE) != 0};
        ring_.Consume(1);
        if (of == user_data) return answer;
      }
      if (deadline.HasPassed(MonotonicNow())) return std::nullopt;
      ring_.Wait(deadline);
    }
  }

  std::byte buffer_{};  // Outlives the ring's use of it.
  Ring ring_;
};

}  // namespace

absl::Status ProbeRing(Ring::Entries entries) { return RingProbe().Run(entries); }

}  // namespace bobbin::io::internal
