// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/raw_uring_server.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include <liburing.h>

#include "bench/echo/buffer_arena.h"
#include "bench/echo/listener.h"
#include "bench/echo/process_setup.h"
#include "bench/echo/server_meter.h"
#include "bench/echo/socket_address.h"
#include "bench/echo/stop_event.h"

namespace bobbin::bench {
namespace {

// Not tuned: a full submission queue costs one early submit, see NextEntry.
constexpr unsigned kSubmissionEntries = 1024;

// Each connection may have a completion waiting here. With fewer entries than connections (8192 for
// 10,000) the kernel must allocate those that do not fit.
constexpr unsigned kCompletionEntries = 16384;

// What is handled before the next submit; the rest keeps its place in the queue. Without a bound,
// connections whose peers answer within a turn go round among themselves while the others wait: at
// 1000 connections that doubled the p99 (2 cores, 2026-11). 256 was slower than 64 at 10,000.
constexpr unsigned kCompletionsPerTurn = 64;

// What a completion is for, in the two low bits of its user data; the descriptor is above.
enum class Operation : uint64_t { kAccept, kReceive, kSend, kStop };

uint64_t Tag(int fd, Operation operation) {
  return (static_cast<uint64_t>(fd) << 2) | static_cast<uint64_t>(operation);
}

// One operation of a connection is in flight at any time, so these two say where its echo stands.
struct Connection {
  uint32_t received = 0;
  uint32_t sent = 0;
};

class RawUringServer {
 public:
  RawUringServer(const ServerOptions& options, size_t files_max, int listener, int stop)
      : buffer_bytes_(options.buffer_bytes),
        files_max_(files_max),
        buffers_(files_max, options.buffer_bytes),
        listener_(listener),
        stop_(stop) {}
  RawUringServer(const RawUringServer&) = delete;
  RawUringServer& operator=(const RawUringServer&) = delete;
  ~RawUringServer() {
    if (has_ring_) io_uring_queue_exit(&ring_);
  }

  // Returns the error text, empty if the ring is ready.
  std::string Open();

  // Serves until the stop descriptor is readable.
  std::string Serve();

  ServerMeter& meter() { return meter_; }

 private:
  io_uring_sqe* NextEntry();
  void Reap();
  void Dispatch(const io_uring_cqe& completion);

  void Accept();
  void Receive(int fd);
  void Send(int fd);
  void OnAccepted(int result, bool is_last);
  void OnReceived(int fd, int result);
  void OnSent(int fd, int result);
  void Close(int fd);

  const size_t buffer_bytes_;
  const size_t files_max_;
  ServerMeter meter_;
  BufferArena buffers_;
  std::vector<Connection> connections_;  // By descriptor.
  const int listener_;
  const int stop_;
  bool is_accepting_ = false;
  bool is_stopping_ = false;
  bool has_ring_ = false;
  io_uring ring_{};
};

std::string RawUringServer::Open() {
  if (!buffers_.is_open()) return "reserve buffers: " + ErrorText(ENOMEM);
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  params.cq_entries = kCompletionEntries;
  const int result = io_uring_queue_init_params(kSubmissionEntries, &ring_, &params);
  if (result < 0) return "io_uring: " + ErrorText(-result);
  has_ring_ = true;
  io_uring_register_ring_fd(&ring_);  // Saves a descriptor look-up an enter; works without, too.
  return "";
}

std::string RawUringServer::Serve() {
  Accept();
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_poll_add(entry, stop_, POLLIN);
  entry->user_data = Tag(stop_, Operation::kStop);

  // One enter submits what the last batch asked for, runs the kernel's deferred work, and waits
  // only if that completed nothing. Looping while the ring's flags show TASKRUN or CQ_OVERFLOW is
  // this same call: it does not sleep while either is set. A bigger batch is not to be had by
  // entering again before submitting, because the kernel caps the work it runs per enter, not per
  // submit.
  while (!is_stopping_) {
    const int result = io_uring_submit_and_wait(&ring_, 1);
    if (result == -EBUSY || result == -EAGAIN) {
      io_uring_get_events(&ring_);  // Completions must be taken before more is accepted.
    } else if (result < 0 && result != -EINTR) {
      return "io_uring enter: " + ErrorText(-result);
    }
    Reap();
  }
  return "";
}

// Returns a free entry. Submits early where the queue is full; what completes meanwhile is seen by
// a later Reap.
io_uring_sqe* RawUringServer::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    if (io_uring_submit(&ring_) < 0) io_uring_get_events(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

void RawUringServer::Reap() {
  const unsigned ready = std::min(io_uring_cq_ready(&ring_), kCompletionsPerTurn);
  const unsigned head = *ring_.cq.khead;
  for (unsigned i = 0; i < ready; ++i) {
    Dispatch(ring_.cq.cqes[(head + i) & ring_.cq.ring_mask]);
  }
  io_uring_cq_advance(&ring_, ready);
}

void RawUringServer::Dispatch(const io_uring_cqe& completion) {
  const int fd = static_cast<int>(completion.user_data >> 2);
  switch (static_cast<Operation>(completion.user_data & 3)) {
    case Operation::kReceive:
      return OnReceived(fd, completion.res);
    case Operation::kSend:
      return OnSent(fd, completion.res);
    case Operation::kAccept:
      return OnAccepted(completion.res, (completion.flags & IORING_CQE_F_MORE) == 0);
    case Operation::kStop:
      is_stopping_ = true;
      return;
  }
}

void RawUringServer::Accept() {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_multishot_accept(entry, listener_, nullptr, nullptr, SOCK_CLOEXEC);
  entry->user_data = Tag(listener_, Operation::kAccept);
  is_accepting_ = true;
}

// Not POLL_FIRST: while a batch of sends was on its way, the peer of an early one has often
// answered already, and then the receive completes at once, without a wait to arm and a wake to
// handle. Worth 6 % of CPU at 64 connections and 13 % at 1000.
void RawUringServer::Receive(int fd) {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_recv(entry, fd, buffers_.At(static_cast<size_t>(fd)), buffer_bytes_, 0);
  entry->user_data = Tag(fd, Operation::kReceive);
}

void RawUringServer::Send(int fd) {
  const Connection& connection = connections_[static_cast<size_t>(fd)];
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_send(entry, fd, buffers_.At(static_cast<size_t>(fd)) + connection.sent,
                     connection.received - connection.sent, MSG_NOSIGNAL);
  entry->user_data = Tag(fd, Operation::kSend);
}

void RawUringServer::OnAccepted(int result, bool is_last) {
  if (result >= 0) {
    const size_t index = static_cast<size_t>(result);
    if (index >= files_max_) {
      ::close(result);
    } else {
      if (index >= connections_.size()) connections_.resize(index + 1);
      meter_.OnOpen();
      Receive(result);
    }
  }
  if (!is_last) return;
  // Out of descriptors or memory: asking again at once would spin. The next close asks.
  is_accepting_ = false;
  const bool is_exhausted =
      result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;
  if (!is_exhausted) Accept();
}

void RawUringServer::OnReceived(int fd, int result) {
  if (result <= 0) return Close(fd);
  meter_.OnReceive(static_cast<size_t>(result));
  connections_[static_cast<size_t>(fd)] = {.received = static_cast<uint32_t>(result), .sent = 0};
  Send(fd);
}

void RawUringServer::OnSent(int fd, int result) {
  if (result < 0) return Close(fd);
  Connection& connection = connections_[static_cast<size_t>(fd)];
  connection.sent += static_cast<uint32_t>(result);
  if (connection.sent < connection.received) return Send(fd);
  Receive(fd);
}

void RawUringServer::Close(int fd) {
  meter_.OnClose();
  ::close(fd);
  if (!is_accepting_) Accept();
}

}  // namespace

int RunRawUringServer(const ServerOptions& options) {
  const auto failed = [](const std::string& error) {
    std::fprintf(stderr, "raw-uring: %s\n", error.c_str());
    return 1;
  };
  if (std::string error = PinToCpu(options.cpu); !error.empty()) return failed(error);
  const size_t files_max = RaiseFileLimit();
  const StopEvent stop(options.seconds);
  if (!stop.fd().is_open()) return failed("stop event: not available");
  const Listener listener = OpenListener(options);
  if (!listener.error.empty()) return failed(listener.error);

  RawUringServer server(options, files_max, listener.fd.get(), stop.fd().get());
  if (std::string error = server.Open(); !error.empty()) return failed(error);
  AnnounceListening(listener);
  if (std::string error = server.Serve(); !error.empty()) return failed(error);
  PrintServerReport(server.meter().Report("raw-uring"));
  return 0;
}

}  // namespace bobbin::bench
