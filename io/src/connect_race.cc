// SPDX-License-Identifier: Apache-2.0

#include "io/src/connect_race.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>

#include "io/src/connect.h"
#include "io/src/result.h"
#include "io/src/tcp_options.h"
#include "io/src/watch_set.h"

namespace bobbin::io::internal {

namespace {

class ConnectRace {
 public:
  explicit ConnectRace(const RaceOptions& options)
      : name_(options.name),
        addresses_(TakingTurns(options.addresses)),
        attempt_delay_(options.attempt_delay),
        tcp_(options.tcp) {}

  absl::StatusOr<FileDescriptor> Run();

 private:
  struct Attempt {
    const SocketAddress* peer;
    FileDescriptor fd;
  };

  bool has_next() const { return next_ < addresses_.size(); }
  // Begins the next attempt; the socket, if it is connected already.
  std::optional<FileDescriptor> Begin();
  // Looks what has become of the attempt that has `fd`; the socket, if that is a connection.
  std::optional<FileDescriptor> Look(int fd);
  void NoteFailure(const SocketAddress& peer, Result result);

  absl::Status AllFailed() const {
    return MakeStatus(last_failure_.code(), fmt::format("connect {}: {}", name_, failures_));
  }

  const std::string_view name_;
  const std::vector<SocketAddress> addresses_;
  const std::chrono::nanoseconds attempt_delay_;
  const TcpOptions& tcp_;
  size_t next_ = 0;  // Of `addresses_`: the one that has not begun.
  WatchSet watched_;
  std::vector<Attempt> attempts_;  // Those that go on.
  absl::Status last_failure_;
  std::string failures_;
};

void ConnectRace::NoteFailure(const SocketAddress& peer, Result result) {
  last_failure_ = ResultStatus(result, peer.ToString());
  if (!failures_.empty()) failures_ += "; ";
  failures_ += MessageOf(last_failure_);
}

std::optional<FileDescriptor> ConnectRace::Begin() {
  const SocketAddress& peer = addresses_[next_++];
  FileDescriptor fd(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  Result result = fd.is_open() ? 0 : -errno;
  if (result == 0) {
    result = ApplyTcpOptions(fd.get(), tcp_, Before::kSystemDefaults);
    if (result == 0) result = BeginConnect(fd.get(), peer.data(), peer.bytes());
  }
  if (result == 0) return fd;
  if (result == -EAGAIN) result = watched_.Watch(fd.get(), EPOLLOUT);
  if (result == 0) {
    attempts_.push_back({&peer, std::move(fd)});
  } else {
    NoteFailure(peer, result);
  }
  return std::nullopt;
}

std::optional<FileDescriptor> ConnectRace::Look(int fd) {
  const auto attempt = std::find_if(attempts_.begin(), attempts_.end(),
                                    [&](const Attempt& one) { return one.fd.get() == fd; });
  if (attempt == attempts_.end()) return std::nullopt;
  const Result result = ConnectOutcome(fd);
  if (result == -EAGAIN) return std::nullopt;
  std::optional<FileDescriptor> connected;
  if (result == 0) {
    watched_.Forget(fd);
    connected = std::move(attempt->fd);
  } else {
    NoteFailure(*attempt->peer, result);
  }
  attempts_.erase(attempt);
  return connected;
}

absl::StatusOr<FileDescriptor> ConnectRace::Run() {
  BOBBIN_RETURN_IF_ERROR(watched_.status());
  // When the next attempt begins although others go on.
  Deadline turn = Deadline::After(std::chrono::nanoseconds(0));
  while (true) {
    const size_t going_on = attempts_.size();
    if (has_next() && (going_on == 0 || turn.HasPassed(MonotonicNow()))) {
      if (std::optional<FileDescriptor> connected = Begin()) return *std::move(connected);
      turn = Deadline::After(attempt_delay_);
      continue;
    }
    if (going_on == 0) return AllFailed();

    BOBBIN_ASSIGN_OR_RETURN(const std::span<const epoll_event> ready,
                            watched_.AwaitUntil(has_next() ? turn : Deadline::Never()));
    for (const epoll_event& event : ready) {
      if (std::optional<FileDescriptor> connected = Look(event.data.fd)) {
        return *std::move(connected);
      }
    }
    // One that has failed gives its turn to the next.
    if (attempts_.size() < going_on) turn = Deadline::After(std::chrono::nanoseconds(0));
  }
}

}  // namespace

std::vector<SocketAddress> TakingTurns(std::span<const SocketAddress> addresses) {
  std::vector<SocketAddress> first, second;
  for (const SocketAddress& address : addresses) {
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  }
  std::vector<SocketAddress> turns;
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) turns.push_back(first[i]);
    if (i < second.size()) turns.push_back(second[i]);
  }
  return turns;
}

absl::StatusOr<FileDescriptor> RaceToConnect(const RaceOptions& options) {
  BOBBIN_CHECK(!options.addresses.empty(), "there must be an address to connect to");
  return ConnectRace(options).Run();
}

}  // namespace bobbin::io::internal
