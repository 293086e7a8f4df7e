// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/echo_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "bench/echo/latency_histogram.h"
#include "bench/echo/load_ring.h"
#include "bench/echo/message_stream.h"
#include "bench/echo/process_setup.h"
#include "bench/echo/socket_address.h"
#include "bench/echo/unique_fd.h"

namespace bobbin::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Connections are opened this many at a time, and the server gets a moment to accept after each
// burst: its backlog must not overflow, or the kernel answers after a second instead.
constexpr uint32_t kConnectsAtATime = 64;
constexpr uint32_t kConnectsPerBurst = 256;
constexpr auto kPauseAfterBurst = std::chrono::milliseconds(2);

// The most one receive takes. Not tuned.
constexpr size_t kReceiveBytesMax = 16384;

// Connections that send their first message between two looks at what has come back.
constexpr uint32_t kStartsATurn = 256;

// How long the last messages may take to come back. A server that needs longer has lost them.
constexpr uint64_t kDrainNanoseconds = 5'000'000'000;

// Descriptors the process needs besides the connections'.
constexpr size_t kOtherFiles = 16;

enum class Operation : uint64_t { kConnect, kReceive, kSend };

uint64_t Tag(uint32_t connection, Operation operation) {
  return (uint64_t{connection} << 2) | static_cast<uint64_t>(operation);
}

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

uint64_t ThreadCpuNanoseconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t Nanoseconds(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

double Microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

struct Connection {
  UniqueFd fd;
  MessageStream stream;
  bool is_sending = false;
};

class EchoLoad {
 public:
  EchoLoad(const LoadOptions& options, const SocketAddress& server)
      : options_(options),
        server_(server),
        places_(size_t{options.connections} * options.depth * options.message_bytes),
        due_at_(size_t{options.connections} * options.depth) {}

  LoadResult Run();

 private:
  void Prepare();
  void ConnectAll();
  void StartConnect(uint32_t index);
  void Exchange();
  void Drain();
  void Summarise();
  void Disconnect();

  void TakeTurnsUntil(uint64_t end);
  void TakeTurn();
  void Dispatch(const io_uring_cqe& completion);
  void OnReceived(uint32_t index, const io_uring_cqe& completion);
  void OnMessage(uint64_t due_at);
  void OnSent(uint32_t index, int result);
  void Receive(uint32_t index);
  void Send(uint32_t index);
  void Lose(uint32_t index, const std::string& cause);

  void NoteError(std::string error, uint64_t count = 1);
  void Break(std::string error);

  const LoadOptions& options_;
  const SocketAddress& server_;
  LoadResult result_;

  LoadRing ring_;  // Ends before the memory its requests name.
  std::vector<std::byte> places_;
  std::vector<uint64_t> due_at_;
  std::vector<Connection> connections_;

  LatencyHistogram measured_;
  LatencyHistogram first_second_;

  uint64_t now_ = 0;  // Read once a turn.
  uint64_t first_second_end_ = 0;
  uint64_t measure_begin_ = 0;
  uint64_t measure_end_ = 0;
  uint64_t cpu_nanoseconds_ = 0;
  uint64_t in_flight_ = 0;
  uint32_t connected_ = 0;
  bool is_sending_more_ = true;
  bool is_broken_ = false;  // Nothing that comes later can be trusted.
};

LoadResult EchoLoad::Run() {
  result_.connections = options_.connections;
  result_.depth = options_.depth;
  Prepare();
  if (!is_broken_) ConnectAll();
  if (!is_broken_) Exchange();
  if (!is_broken_) Drain();
  Summarise();
  Disconnect();
  return std::move(result_);
}

void EchoLoad::Prepare() {
  std::string error = PinToCpu(options_.cpu);
  const size_t files_max = RaiseFileLimit();
  if (error.empty() && options_.connections + kOtherFiles > files_max) {
    error = "connections " + std::to_string(options_.connections) + ": the process may open " +
            std::to_string(files_max) + " files";
  }
  if (error.empty()) {
    error = ring_.Open(std::clamp<size_t>(std::bit_ceil(options_.depth * options_.message_bytes),
                                          64, kReceiveBytesMax));
  }
  if (!error.empty()) return Break(std::move(error));

  connections_.reserve(options_.connections);
  const size_t stream_bytes = options_.depth * options_.message_bytes;
  for (uint32_t i = 0; i < options_.connections; ++i) {
    const std::span places = std::span(places_).subspan(i * stream_bytes, stream_bytes);
    const std::span due_at = std::span(due_at_).subspan(size_t{i} * options_.depth, options_.depth);
    connections_.push_back({.fd = {}, .stream = MessageStream(i, places, due_at)});
  }
}

void EchoLoad::ConnectAll() {
  uint32_t started = 0;
  while (!is_broken_ && connected_ < options_.connections) {
    const bool burst_is_over = started > 0 && started % kConnectsPerBurst == 0;
    if (burst_is_over && connected_ == started) std::this_thread::sleep_for(kPauseAfterBurst);
    while (started < options_.connections && started - connected_ < kConnectsAtATime) {
      if (started > connected_ && started % kConnectsPerBurst == 0) break;
      StartConnect(started++);
      if (is_broken_) return;
    }
    if (std::string error = ring_.Wait(); !error.empty()) return Break(std::move(error));
    ring_.Reap([this](const io_uring_cqe& completion) { Dispatch(completion); });
  }
}

void EchoLoad::StartConnect(uint32_t index) {
  UniqueFd fd(::socket(server_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return Break("socket: " + ErrorText(errno));
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_connect(entry, fd.get(), server_.get(), server_.length());
  entry->user_data = Tag(index, Operation::kConnect);
  connections_[index].fd = std::move(fd);
}

void EchoLoad::Exchange() {
  now_ = Now();
  first_second_end_ = now_ + Nanoseconds(1);
  measure_begin_ = now_ + Nanoseconds(options_.warmup_seconds);
  measure_end_ = measure_begin_ + Nanoseconds(options_.seconds);
  for (uint32_t i = 0; i < options_.connections && !is_broken_; ++i) {
    Receive(i);
    Send(i);
    if (i % kStartsATurn == kStartsATurn - 1) TakeTurn();
  }
  TakeTurnsUntil(measure_begin_);
  const uint64_t cpu_begin = ThreadCpuNanoseconds();
  TakeTurnsUntil(measure_end_);
  cpu_nanoseconds_ = ThreadCpuNanoseconds() - cpu_begin;
}

void EchoLoad::Drain() {
  is_sending_more_ = false;
  const uint64_t drain_end = now_ + kDrainNanoseconds;
  while (!is_broken_ && in_flight_ > 0 && now_ < drain_end) TakeTurn();
  if (is_broken_ || in_flight_ == 0) return;
  NoteError("echo " + server_.ToString() + ": " + std::to_string(in_flight_) +
                " messages never came back",
            in_flight_);
}

void EchoLoad::Summarise() {
  const uint64_t end = std::min(now_, measure_end_);  // A run that broke off is shorter.
  if (end > measure_begin_) {
    const auto measured = static_cast<double>(end - measure_begin_);
    result_.requests_per_second = static_cast<double>(result_.requests) * 1e9 / measured;
    result_.client_cpu_share = std::min(1.0, static_cast<double>(cpu_nanoseconds_) / measured);
  }
  result_.p50_us = Microseconds(measured_.Quantile(0.5));
  result_.p99_us = Microseconds(measured_.Quantile(0.99));
  result_.p999_us = Microseconds(measured_.Quantile(0.999));
  result_.first_second_p99_us = Microseconds(first_second_.Quantile(0.99));
}

void EchoLoad::Disconnect() {
  // A receive in flight holds the socket open beyond its close; shutting down ends it.
  for (Connection& connection : connections_) {
    if (!connection.fd.is_open()) continue;
    ::shutdown(connection.fd.get(), SHUT_RDWR);
    connection.fd.Reset();
  }
}

void EchoLoad::TakeTurnsUntil(uint64_t end) {
  while (!is_broken_ && connected_ > 0 && now_ < end) TakeTurn();
}

void EchoLoad::TakeTurn() {
  std::string error = options_.spin ? ring_.Poll() : ring_.Wait();
  if (!error.empty()) return Break(std::move(error));
  now_ = Now();
  ring_.Reap([this](const io_uring_cqe& completion) { Dispatch(completion); });
}

void EchoLoad::Dispatch(const io_uring_cqe& completion) {
  if (is_broken_) return;
  const auto index = static_cast<uint32_t>(completion.user_data >> 2);
  switch (static_cast<Operation>(completion.user_data & 3)) {
    case Operation::kReceive:
      return OnReceived(index, completion);
    case Operation::kSend:
      return OnSent(index, completion.res);
    case Operation::kConnect:
      if (completion.res == 0) {
        ++connected_;
      } else {
        Break("connect " + server_.ToString() + ": " + ErrorText(-completion.res));
      }
      return;
  }
}

void EchoLoad::OnReceived(uint32_t index, const io_uring_cqe& completion) {
  Connection& connection = connections_[index];
  const int received = completion.res;
  bool is_right = true;
  if (received > 0 && connection.fd.is_open()) {
    is_right = connection.stream.OnReceived(ring_.Received(completion),
                                            [this](uint64_t due_at) { OnMessage(due_at); });
  }
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0) ring_.GiveBack(completion);
  if (!connection.fd.is_open()) return;

  if (received > 0) {
    if (!is_right) {
      return Break("echo " + server_.ToString() + ": wrong byte on connection " +
                   std::to_string(index));
    }
    if (is_sending_more_) Send(index);
  } else if (received != -ENOBUFS) {
    return Lose(index, received == 0 ? "closed by the peer" : ErrorText(-received));
  }
  // The kernel ends a multishot receive when buffers run out; the next one goes on where it
  // stopped.
  if ((completion.flags & IORING_CQE_F_MORE) == 0) Receive(index);
}

void EchoLoad::OnMessage(uint64_t due_at) {
  --in_flight_;
  const uint64_t nanoseconds = now_ - due_at;
  if (due_at < first_second_end_) first_second_.Add(nanoseconds);
  if (now_ < measure_begin_) return;
  measured_.Add(nanoseconds);
  if (now_ < measure_end_) ++result_.requests;
}

void EchoLoad::OnSent(uint32_t index, int result) {
  Connection& connection = connections_[index];
  if (!connection.fd.is_open()) return;
  connection.is_sending = false;
  if (result < 0) return Lose(index, ErrorText(-result));
  connection.stream.OnSent(static_cast<size_t>(result));
  Send(index);
}

void EchoLoad::Receive(uint32_t index) {
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_recv_multishot(entry, connections_[index].fd.get(), nullptr, 0, 0);
  entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = LoadRing::kBufferGroup;
  entry->user_data = Tag(index, Operation::kReceive);
}

// Makes the messages that are due and sends what is unsent. One send at a time: two could overtake
// each other where the first has to wait.
void EchoLoad::Send(uint32_t index) {
  Connection& connection = connections_[index];
  if (is_sending_more_) {
    const size_t before = connection.stream.in_flight();
    connection.stream.Fill(now_);
    in_flight_ += connection.stream.in_flight() - before;
  }
  const std::span<const std::byte> unsent = connection.stream.Unsent();
  if (connection.is_sending || unsent.empty()) return;
  connection.is_sending = true;
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_send(entry, connection.fd.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
  entry->user_data = Tag(index, Operation::kSend);
}

// Goes on without the connection: what the others do is still worth knowing.
void EchoLoad::Lose(uint32_t index, const std::string& cause) {
  Connection& connection = connections_[index];
  in_flight_ -= connection.stream.in_flight();
  --connected_;
  ::shutdown(connection.fd.get(), SHUT_RDWR);
  connection.fd.Reset();
  NoteError("echo " + server_.ToString() + ": connection " + std::to_string(index) + ": " + cause);
}

void EchoLoad::NoteError(std::string error, uint64_t count) {
  result_.errors += count;
  if (result_.error.empty()) result_.error = std::move(error);
}

void EchoLoad::Break(std::string error) {
  is_broken_ = true;
  NoteError(std::move(error));
}

}  // namespace

std::string CheckLoadOptions(const LoadOptions& options) {
  const auto outside = [](const char* name, const std::string& value, const std::string& range) {
    return std::string(name) + " " + value + ": must be " + range;
  };
  if (!SocketAddress::Parse(options.host, options.port)) {
    return "host " + options.host + ": not a numeric address";
  }
  if (options.port == 0) return outside("port", "0", "from 1 to 65535");
  if (options.connections == 0) return outside("connections", "0", "at least 1");
  if (options.depth == 0 || options.depth > LoadOptions::kDepthMax) {
    return outside("depth", std::to_string(options.depth),
                   "from 1 to " + std::to_string(LoadOptions::kDepthMax));
  }
  if (options.message_bytes == 0 || options.message_bytes > LoadOptions::kMessageBytesMax) {
    return outside("bytes", std::to_string(options.message_bytes),
                   "from 1 to " + std::to_string(LoadOptions::kMessageBytesMax));
  }
  if (!(options.seconds > 0 && options.seconds <= 86400)) {
    return outside("seconds", std::to_string(options.seconds), "above 0 and at most 86400");
  }
  if (!(options.warmup_seconds >= 0 && options.warmup_seconds <= 86400)) {
    return outside("warmup", std::to_string(options.warmup_seconds), "from 0 to 86400");
  }
  if (std::string why = CheckCpu(options.cpu); !why.empty()) return why;
  const size_t bytes = size_t{options.connections} * options.depth * options.message_bytes;
  if (bytes > LoadOptions::kInFlightBytesMax) {
    return "connections x depth x bytes " + std::to_string(bytes) + ": must be at most " +
           std::to_string(LoadOptions::kInFlightBytesMax);
  }
  return "";
}

LoadResult RunEchoLoad(const LoadOptions& options) {
  if (std::string error = CheckLoadOptions(options); !error.empty()) {
    LoadResult refused;
    refused.errors = 1;
    refused.error = std::move(error);
    return refused;
  }
  return EchoLoad(options, *SocketAddress::Parse(options.host, options.port)).Run();
}

}  // namespace bobbin::bench
