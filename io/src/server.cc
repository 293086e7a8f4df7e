// SPDX-License-Identifier: Apache-2.0
//
// Why a drain misses no idle connection. A handler that waits for its peer has first said that it
// is idle, then looked whether the server drains; a drain has first said that it drains, then
// looks who is idle. All four are seq_cst, so at least one of the two sees the other. If both do,
// an end is made twice, which does no harm. A thread that has been launched and not begun comes
// into the list later, and finds the server draining; it counts from its launch on.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/status.h>
#include <bobbin/io/server.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/internal/time_left.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/runtime.h>

namespace bobbin::io {

namespace {

// Whether a handler may end so because of its peer, or because it was asked to.
bool IsUsualEnd(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

// --- ServerConnection

void ServerConnection::MarkIdle() {
  is_idle_.store(true);
  if (is_draining()) stream_.ShutdownRead().IgnoreError();
}

void ServerConnection::MarkBusy() { is_idle_.store(false); }

bool ServerConnection::is_draining() const { return server_.is_draining_.load(); }

// --- Beginning, and accepting

Server::Server(ServerOptions options, TcpListener listener, Handler handler)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      listener_(std::move(listener)),
      places_(options_.connections_max),
      threads_({.on_failure = OnFailure::kLog, .placement = Placement::kSpread}),
      acceptors_({.placement = Placement::kSpread}) {
  BOBBIN_CHECK(options_.connections_max >= 1, "a server wants to serve at least one connection");
  const std::string name = options_.name + " acceptor";
  const int loops = bobbin::internal::CurrentRuntime().carriers();
  for (int i = 0; i < loops; ++i) {
    acceptors_.Spawn({.name = name}, [this] {
      absl::Status status = AcceptLoop();
      if (is_draining_.load()) return;
      MutexLock hold(mutex_);
      if (!has_ended_.IsSet()) end_ = std::move(status);
      has_ended_.Set();
    });
  }
}

absl::Status Server::AcceptLoop() {
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(SemaphorePermit place, AwaitPlace());
    BOBBIN_ASSIGN_OR_RETURN(TcpStream stream, listener_.Accept());
    Launch(std::move(place), std::move(stream));
  }
}

absl::StatusOr<SemaphorePermit> Server::AwaitPlace() {
  if (places_.TryAcquire()) return SemaphorePermit(places_);
  {
    MutexLock hold(mutex_);
    ++limited_;
  }
  return places_.AcquirePermit();
}

void Server::Launch(SemaphorePermit place, TcpStream stream) {
  uint64_t number;
  {
    MutexLock hold(mutex_);
    number = ++accepted_;
  }
  threads_.Spawn({.name = NameOf(number), .stack_bytes = options_.stack_bytes},
                 [this, number, place = std::move(place), stream = std::move(stream)]() mutable {
                   absl::Status end = Serve(std::move(stream), number);
                   return IsUsualEnd(end) ? absl::OkStatus() : end;
                 });
}

absl::Status Server::Serve(TcpStream stream, uint64_t number) {
  ServerConnection connection(*this, std::move(stream), number);
  Enter(connection);
  absl::Status end;
  const std::exception_ptr exception =
      bobbin::internal::CaptureException([&] { end = handler_(connection); });
  Leave(connection, exception != nullptr || !end.ok());
  if (exception != nullptr) std::rethrow_exception(exception);
  return end;
}

void Server::Enter(ServerConnection& connection) {
  MutexLock hold(mutex_);
  connections_.PushBack(connection);
}

void Server::Leave(ServerConnection& connection, bool has_failed) {
  // The peer learns of it before others count on it.
  connection.stream_.Close();
  MutexLock hold(mutex_);
  connections_.Remove(connection);
  if (has_failed) ++failed_;
  if (is_draining_.load()) {
    ++(is_cancelling_               ? drained_.cancelled
       : connection.was_ended_idle_ ? drained_.idle
                                    : drained_.finished);
  }
  if (++left_ == accepted_) none_left_.NotifyAll();
}

// --- The end

Server::~Server() {
  StopAccepting();
  threads_.Cancel();
}

absl::Status Server::Wait() {
  BOBBIN_RETURN_IF_ERROR(has_ended_.Wait());
  MutexLock hold(mutex_);
  return end_;
}

void Server::StopAccepting() {
  is_draining_.store(true);
  const CancelShield shield;  // Nobody there waits for long.
  acceptors_.Cancel();
  acceptors_.Wait().IgnoreError();
  listener_.Close();
}

DrainResult Server::Drain(const DrainOptions& options) {
  StopAccepting();
  {
    MutexLock hold(mutex_);
    for (ServerConnection* each = connections_.Front(); each != nullptr;
         each = connections_.Next(*each)) {
      if (!each->is_idle_.load()) continue;
      each->was_ended_idle_ = true;
      each->stream_.ShutdownRead().IgnoreError();
    }
  }

  // Busy ones may finish; then they are asked to stop.
  const auto is_empty = [this] {
    mutex_.AssertHeld();
    return left_ == accepted_;
  };
  bool are_gone;
  {
    MutexLock hold(mutex_);
    are_gone = none_left_.WaitUntil(mutex_, Deadline::After(options.grace), is_empty).ok();
    is_cancelling_ = !are_gone;
  }
  if (!are_gone) {
    threads_.Cancel();
    const CancelShield shield;
    MutexLock hold(mutex_);
    none_left_.WaitUntil(mutex_, Deadline::After(options.cancel_grace), is_empty).IgnoreError();
  }

  MutexLock hold(mutex_);
  is_cancelling_ = false;
  DrainResult result = std::exchange(drained_, {});
  uint64_t fresh = accepted_ - left_;
  for (ServerConnection* each = connections_.Front(); each != nullptr;
       each = connections_.Next(*each)) {
    const absl::StatusOr<SocketAddress> peer = each->stream_.peer_address();
    result.stragglers.push_back(fmt::format("{}, of {}", NameOf(each->number_),
                                            peer.ok() ? peer->ToString() : "a peer that has gone"));
    --fresh;
  }
  if (fresh > 0) result.stragglers.push_back(fmt::format("{} that have not begun", fresh));
  has_ended_.Set();
  return result;
}

StopHook Server::StopWith(Lifecycle& life) {
  return life.OnStop({.phase = StopPhase::kServers, .name = options_.name}, [this] {
    const std::chrono::nanoseconds left = bobbin::internal::TimeLeft();
    const DrainResult end = Drain({.grace = left / 5 * 4, .cancel_grace = left / 10});
    bobbin::internal::Tell(
        {.level = LogLevel::kInfo,
         .text = fmt::format("stop: {}: connections: {} idle, {} finished, {} cancelled",
                             options_.name, end.idle, end.finished, end.cancelled)});
    if (end.stragglers.empty()) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      fmt::format("drain {}: {} connections did not end: {}", options_.name,
                                  end.stragglers.size(), fmt::join(end.stragglers, "; ")));
  });
}

std::string Server::NameOf(uint64_t number) const {
  return fmt::format("{} {}", options_.name, number);
}

ServerStatistics Server::Statistics() const {
  MutexLock hold(mutex_);
  ServerStatistics now{.connections = accepted_ - left_,
                       .accepted = accepted_,
                       .failed = failed_,
                       .limited = limited_,
                       .accept_pauses = listener_.accept_pauses()};
  auto& connections = const_cast<Server*>(this)->connections_;
  for (ServerConnection* each = connections.Front(); each != nullptr;
       each = connections.Next(*each)) {
    if (each->is_idle_.load()) ++now.idle;
  }
  return now;
}

}  // namespace bobbin::io
