// SPDX-License-Identifier: Apache-2.0

#include "io/src/dns_question.h"

#include <ares.h>
#include <netinet/in.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <vector>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>

#include "io/src/result.h"
#include "io/src/watch_set.h"

namespace bobbin::io::internal {

namespace {

constexpr int kClassIn = 1;
constexpr int kTypeA = 1;
constexpr int kTypeAaaa = 28;

absl::Status OutOfMemory() {
  return MakeStatus(absl::StatusCode::kResourceExhausted, "resolve: out of memory");
}

int AttemptMilliseconds(std::chrono::nanoseconds attempt) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(attempt).count();
  // c-ares doubles it now and then, as an int.
  return static_cast<int>(std::clamp<int64_t>(milliseconds, 1, 24 * 3600 * 1000));
}

// The question for one family: a channel, and its sockets in a set that others share.
class FamilyQuestion {
 public:
  FamilyQuestion(const DnsQuestion& question, WatchSet& watched, FamilyAnswer& of)
      : question_(question), watched_(watched), of_(of) {}
  FamilyQuestion(const FamilyQuestion&) = delete;
  FamilyQuestion& operator=(const FamilyQuestion&) = delete;
  // What has not been answered is given up.
  ~FamilyQuestion() {
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  absl::Status Begin();
  bool is_open() const { return is_open_; }
  // Whether what it has got will do, and the other family is waited for only for a moment.
  bool has_verdict() const { return of_.is_verdict(); }
  // Until when c-ares need not be called, if the sockets are quiet.
  Deadline NextDeadline() const;
  // Tells it of a descriptor that is ready, if that is its own.
  void Process(const epoll_event& event);
  // Tells it that time has passed.
  void ProcessTime() { ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD); }
  // Why its sockets could not be watched, or OK.
  const absl::Status& status() const { return status_; }

 private:
  // Called by c-ares, from within calls to it.
  static void OnSocket(void* self, ares_socket_t fd, int readable, int writable);
  static void OnAnswer(void* self, int status, int timeouts, unsigned char* message, int bytes);

  absl::Status MakeChannel();

  const DnsQuestion& question_;
  WatchSet& watched_;
  FamilyAnswer& of_;
  ares_channel channel_ = nullptr;
  std::vector<int> sockets_;
  bool is_open_ = true;
  absl::Status status_;
};

void FamilyQuestion::OnSocket(void* argument, ares_socket_t fd, int readable, int writable) {
  FamilyQuestion& self = *static_cast<FamilyQuestion*>(argument);
  if (readable == 0 && writable == 0) {
    std::erase(self.sockets_, fd);
    self.watched_.Forget(fd);
    return;
  }
  uint32_t events = 0;
  if (readable != 0) events |= EPOLLIN;
  if (writable != 0) events |= EPOLLOUT;
  if (std::find(self.sockets_.begin(), self.sockets_.end(), fd) == self.sockets_.end()) {
    self.sockets_.push_back(fd);
  }
  const Result watched = self.watched_.Watch(fd, events);
  if (watched < 0) self.status_.Update(ResultStatus(watched, "watch a socket"));
}

void FamilyQuestion::OnAnswer(void* argument, int status, int, unsigned char* message, int bytes) {
  FamilyQuestion& self = *static_cast<FamilyQuestion*>(argument);
  self.is_open_ = false;
  DnsAnswer& answer = self.of_.answer;
  if (message != nullptr && bytes > 0) {
    answer = DnsAnswer::Parse(self.of_.family, std::span(message, static_cast<size_t>(bytes)));
  } else if (status != ARES_EDESTRUCTION) {
    answer.outcome = status == ARES_EBADRESP ? DnsOutcome::kNonsense : DnsOutcome::kSilence;
  }
}

// A number for each option, so that c-ares need not look for one in files.
absl::Status FamilyQuestion::MakeChannel() {
  static const int library = ares_library_init(ARES_LIB_INIT_ALL);
  if (library != ARES_SUCCESS) return OutOfMemory();
  char lookups[] = "b";
  ares_options options{};
  // Which errors are worth another server, is decided elsewhere.
  options.flags = ARES_FLAG_NOCHECKRESP | ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
  if (question_.transport == DnsTransport::kTcp) options.flags |= ARES_FLAG_USEVC;
  options.timeout = AttemptMilliseconds(question_.attempt);
  options.tries = 1;
  options.ndots = 1;
  options.lookups = lookups;
  options.sock_state_cb = &OnSocket;
  options.sock_state_cb_data = this;
  if (ares_init_options(&channel_, &options,
                        ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
                            ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
                            ARES_OPT_SORTLIST | ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE) !=
      ARES_SUCCESS) {
    channel_ = nullptr;
    return OutOfMemory();
  }

  ares_addr_port_node server{};
  server.family = question_.server.family();
  server.udp_port = server.tcp_port = question_.server.port();
  if (question_.server.is_ipv6()) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(question_.server.data());
    std::memcpy(&server.addr.addr6, &address->sin6_addr, sizeof(address->sin6_addr));
  } else {
    server.addr.addr4 = reinterpret_cast<const sockaddr_in*>(question_.server.data())->sin_addr;
  }
  return ares_set_servers_ports(channel_, &server) == ARES_SUCCESS ? absl::OkStatus()
                                                                   : OutOfMemory();
}

absl::Status FamilyQuestion::Begin() {
  BOBBIN_RETURN_IF_ERROR(MakeChannel());
  ares_query(channel_, question_.name.c_str(), kClassIn, of_.family == AF_INET ? kTypeA : kTypeAaaa,
             &OnAnswer, this);
  return status_;
}

Deadline FamilyQuestion::NextDeadline() const {
  timeval time{};
  if (ares_timeout(channel_, nullptr, &time) == nullptr) return Deadline::Never();
  // It says how long from now, and rounds down: a turn too early would find nothing to do.
  return Deadline::After(std::chrono::seconds(time.tv_sec) +
                         std::chrono::microseconds(time.tv_usec) + std::chrono::milliseconds(1));
}

void FamilyQuestion::Process(const epoll_event& event) {
  if (std::find(sockets_.begin(), sockets_.end(), event.data.fd) == sockets_.end()) return;
  const bool is_writable = (event.events & EPOLLOUT) != 0;
  const bool is_readable = (event.events & ~uint32_t{EPOLLOUT}) != 0;
  ares_process_fd(channel_, is_readable ? event.data.fd : ARES_SOCKET_BAD,
                  is_writable ? event.data.fd : ARES_SOCKET_BAD);
}

// Until all are answered, or as many as will do.
absl::Status AwaitAnswers(WatchSet& watched, std::list<FamilyQuestion>& questions,
                          std::chrono::nanoseconds other_family_wait) {
  Deadline patience = Deadline::Never();
  while (true) {
    bool is_any_open = false;
    Deadline next = patience;
    for (const FamilyQuestion& question : questions) {
      BOBBIN_RETURN_IF_ERROR(question.status());
      if (question.is_open()) {
        is_any_open = true;
        next = std::min(next, question.NextDeadline());
      } else if (question.has_verdict() && patience.is_never()) {
        patience = Deadline::After(other_family_wait);
        next = std::min(next, patience);
      }
    }
    if (!is_any_open || patience.HasPassed(MonotonicNow())) return absl::OkStatus();

    BOBBIN_ASSIGN_OR_RETURN(const std::span<const epoll_event> ready, watched.AwaitUntil(next));
    const NoSuspendScope no_suspend;
    for (const epoll_event& event : ready) {
      for (FamilyQuestion& question : questions) question.Process(event);
    }
    if (!ready.empty()) continue;
    for (FamilyQuestion& question : questions) question.ProcessTime();
  }
}

}  // namespace

absl::Status AskServer(const DnsQuestion& question, std::span<FamilyAnswer> families) {
  WatchSet watched;
  BOBBIN_RETURN_IF_ERROR(watched.status());
  std::list<FamilyQuestion> questions;
  for (FamilyAnswer& family : families) {
    if (family.answer.is_settled()) continue;
    const NoSuspendScope no_suspend;
    BOBBIN_RETURN_IF_ERROR(questions.emplace_back(question, watched, family).Begin());
  }
  return AwaitAnswers(watched, questions, question.other_family_wait);
}

}  // namespace bobbin::io::internal
