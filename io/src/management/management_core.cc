// SPDX-License-Identifier: Apache-2.0

#include "io/src/management/management_core.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>

#include "io/src/result.h"
#include "io/src/socket_options.h"

namespace bobbin::io::internal {

namespace {

// How long nobody is accepted when neither descriptors nor memory are left. Not tuned.
constexpr std::chrono::milliseconds kShortagePause{100};
// Clients beyond the limit wait there.
constexpr int kBacklog = 64;

FileDescriptor MakeEventFd() { return FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

// A thread that is started meanwhile gets no signal: those are the program's.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

absl::Status ManagementCore::Start() {
  if (options_.connections_max == 0 || options_.header_bytes_max == 0 ||
      options_.request_budget.count() <= 0) {
    return absl::InvalidArgumentError(
        "management: connections_max, header_bytes_max and request_budget must be positive");
  }
  BOBBIN_RETURN_IF_ERROR(Listen());
  end_ = MakeEventFd();
  spare_ = MakeEventFd();
  if (!end_.is_open() || !spare_.is_open()) return ResultStatus(-errno, "management: eventfd");

  const AllSignalsBlocked blocked;
  const auto enter = [](void* core) -> void* {
    static_cast<ManagementCore*>(core)->Run();
    return nullptr;
  };
  const int error = pthread_create(&thread_, nullptr, enter, this);
  if (error != 0) return ResultStatus(-error, "management: a thread");
  is_running_ = true;
  return absl::OkStatus();
}

absl::Status ManagementCore::Listen() {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(options_.listen));
  const auto failed = [&] { return ResultStatus(-errno, "management: " + options_.listen); };
  listener_ = FileDescriptor(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!listener_.is_open()) return failed();
  if (const Result set = SetNumber(listener_.get(), SOL_SOCKET, SO_REUSEADDR, 1); set < 0) {
    return ResultStatus(set, "management: SO_REUSEADDR");
  }
  if (bind(listener_.get(), address.data(), address.bytes()) != 0) return failed();
  if (listen(listener_.get(), kBacklog) != 0) return failed();
  BOBBIN_ASSIGN_OR_RETURN(local_address_, LocalAddress(listener_.get()));
  return absl::OkStatus();
}

void ManagementCore::Stop() {
  if (!std::exchange(is_running_, false)) return;
  const uint64_t once = 1;
  // It cannot fail: nobody has written before.
  [[maybe_unused]] const ssize_t written = write(end_.get(), &once, sizeof(once));
  pthread_join(thread_, nullptr);
  clients_.clear();
  listener_ = FileDescriptor();
}

void ManagementCore::Run() {
  pthread_setname_np(pthread_self(), "management");
  while (true) {
    // The spare descriptor is given back as soon as the process has one again.
    if (!spare_.is_open()) spare_ = MakeEventFd();
    CollectQuestions();
    const int answers = poll(questions_.data(), questions_.size(), PauseMilliseconds());
    // No memory in the kernel: all are asked again after a while.
    if (answers < 0) {
      for (pollfd& question : questions_) question.revents = 0;
      if (errno != EINTR) poll(questions_.data(), 1, static_cast<int>(kShortagePause.count()));
    }
    if (questions_[0].revents != 0) return;

    // Clients first: the questions are about those that were there before.
    const bool has_newcomers = questions_[1].revents != 0;
    ServeClients();
    if (has_newcomers) AcceptAll();
  }
}

void ManagementCore::CollectQuestions() {
  questions_.clear();
  questions_.push_back({end_.get(), POLLIN, 0});
  const bool accepts = HasRoom() && accepts_again_.HasPassed(MonotonicNow());
  questions_.push_back({accepts ? listener_.get() : -1, POLLIN, 0});
  for (const ManagementClient& client : clients_) {
    questions_.push_back({client.fd(), client.events(), 0});
  }
}

int ManagementCore::PauseMilliseconds() const {
  const MonotonicTime now = MonotonicNow();
  Deadline first = accepts_again_.HasPassed(now) ? Deadline::Never() : accepts_again_;
  for (const ManagementClient& client : clients_) first = std::min(first, client.deadline());
  if (first.is_never()) return -1;
  const std::chrono::nanoseconds left(first.nanoseconds() - now.time_since_epoch().count());
  // Rounded up, so that it has passed after the sleep.
  const int64_t milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(milliseconds, 0, std::numeric_limits<int>::max()));
}

void ManagementCore::AcceptAll() {
  while (HasRoom()) {
    const auto accept_one = [this] {
      return FileDescriptor(
          accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    };
    FileDescriptor fd = accept_one();
    if (!fd.is_open() && (errno == EMFILE || errno == ENFILE) && spare_.is_open()) {
      spare_ = FileDescriptor();
      fd = accept_one();
    }
    if (!fd.is_open()) {
      const bool is_shortage =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (is_shortage) accepts_again_ = Deadline::After(kShortagePause);
      return;
    }
    clients_.emplace_back(std::move(fd), options_);
    if (clients_.size() > options_.connections_max) {
      clients_.back().Refuse(ManagementRefusal(503, "there are too many clients"));
    }
  }
}

void ManagementCore::ServeClients() {
  size_t question = 2;
  for (ManagementClient& client : clients_) {
    // What came while another one's page was made came in time. Whoever always has a little more
    // to send is late all the same.
    const bool is_late = client.deadline().HasPassed(MonotonicNow());
    if (questions_[question++].revents != 0 || is_late) client.GoOn(pages_);
    if (is_late && client.deadline().HasPassed(MonotonicNow())) client.Expire();
  }
  clients_.remove_if([](const ManagementClient& client) { return client.has_ended(); });
}

}  // namespace bobbin::io::internal
