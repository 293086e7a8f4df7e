// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/bobbin_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "bench/echo/process_setup.h"
#include "bench/echo/server_meter.h"
#include "bench/echo/stop_event.h"

namespace bobbin::bench {
namespace {

// The most one read takes, whatever the options say: with its buffer and all that is called
// beneath, a connection that waits should touch one page of its stack.
constexpr size_t kStackBufferBytes = 2048;

class EchoServer {
 public:
  EchoServer(const ServerOptions& options, EchoBuffers buffers, io::TcpListener listener)
      : buffers_(buffers),
        buffer_bytes_(std::min(options.buffer_bytes, kStackBufferBytes)),
        listener_(std::move(listener)) {}

  // Takes connections and starts a virtual thread for each, until it is told to stop.
  absl::Status Serve();

  // The figures of all carriers together. REQUIRES: nothing runs any more.
  ServerReport Report();

 private:
  absl::Status Echo(io::TcpStream peer);
  absl::Status EchoPooled(io::TcpStream peer);
  // That of the calling virtual thread's carrier, which it does not leave.
  ServerMeter& MeterHere();

  const EchoBuffers buffers_;
  const size_t buffer_bytes_;
  io::TcpListener listener_;
  ServerMeter before_;  // Knows what the process used before it served anybody.
  Mutex mutex_;
  std::map<const void*, ServerMeter> meters_ ABSL_GUARDED_BY(mutex_);
};

absl::Status EchoServer::Serve() {
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener_.Accept());
    Spawn({.placement = Placement::kSpread}, [this, peer = std::move(peer)]() mutable {
      // A connection that breaks ends itself and nothing else.
      const bool is_pooled = buffers_ == EchoBuffers::kPooled;
      (is_pooled ? EchoPooled(std::move(peer)) : Echo(std::move(peer))).IgnoreError();
    }).Detach();
  }
}

absl::Status EchoServer::Echo(io::TcpStream peer) {
  ServerMeter& meter = MeterHere();
  meter.OnOpen();
  std::array<std::byte, kStackBufferBytes> storage;  // Not touched where nothing is received.
  const std::span<std::byte> buffer = std::span(storage).first(buffer_bytes_);
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<size_t> received = peer.Read(buffer);
    if (!received.ok() || *received == 0) break;
    meter.OnReceive(*received);
    status = peer.WriteAll(buffer.first(*received));
  }
  meter.OnClose();
  return status;
}

absl::Status EchoServer::EchoPooled(io::TcpStream peer) {
  ServerMeter& meter = MeterHere();
  meter.OnOpen();
  absl::Status status;
  while (status.ok()) {
    const absl::StatusOr<io::PooledBytes> received = peer.ReadPooled();
    if (!received.ok() || received->empty()) break;
    meter.OnReceive(received->size());
    status = peer.WriteAll(received->bytes());
  }
  meter.OnClose();
  return status;
}

ServerMeter& EchoServer::MeterHere() {
  const void* const carrier = internal::Current().dispatcher();
  MutexLock hold(mutex_);
  return meters_[carrier];
}

ServerReport EchoServer::Report() {
  MutexLock hold(mutex_);
  // CPU time and memory are the process's: any meter knows them, the busiest one best.
  ServerReport sum = before_.Report("bobbin");
  double cpu_us = 0;
  double accept_us = 0;
  uint64_t resident_bytes = 0;
  for (auto& [carrier, meter] : meters_) {
    const ServerReport report = meter.Report("bobbin");
    sum.requests += report.requests;
    sum.bytes += report.bytes;
    sum.connections_max += report.connections_max;
    sum.accepts += report.accepts;
    accept_us = std::max(accept_us, report.cpu_us_per_accept * static_cast<double>(report.accepts));
    cpu_us = std::max(cpu_us, report.cpu_us_per_request * static_cast<double>(report.requests));
    resident_bytes =
        std::max(resident_bytes, report.resident_bytes_per_connection * report.connections_max);
  }
  if (sum.requests > 0) sum.cpu_us_per_request = cpu_us / static_cast<double>(sum.requests);
  if (sum.accepts > 0) sum.cpu_us_per_accept = accept_us / static_cast<double>(sum.accepts);
  if (sum.connections_max > 0) {
    sum.resident_bytes_per_connection = resident_bytes / sum.connections_max;
  }
  return sum;
}

}  // namespace

int RunBobbinServer(const ServerOptions& options, EchoBuffers buffers, PollerFactory poller) {
  const auto failed = [](std::string_view error) {
    std::fprintf(stderr, "bobbin: %.*s\n", static_cast<int>(error.size()), error.data());
    return 1;
  };
  if (std::string error = PinToCpu(options.cpu); !error.empty()) return failed(error);
  RaiseFileLimit();
  // Before the carriers start: they inherit the signals that it blocks.
  const StopEvent stop(options.seconds);
  if (!stop.fd().is_open()) return failed("stop event: not available");

  const absl::StatusOr<io::SocketAddress> address =
      io::SocketAddress::Parse(options.host, options.port);
  if (!address.ok()) return failed(MessageOf(address.status()));
  absl::StatusOr<io::TcpListener> listener = io::TcpListener::Bind(*address);
  if (!listener.ok()) return failed(MessageOf(listener.status()));
  const std::string listening = listener->local_address().ToString();

  absl::StatusOr<std::unique_ptr<Runtime>> runtime =
      Runtime::Create({.carriers = options.carriers,
                       .poller = std::move(poller),
                       .stack_bytes = options.stack_bytes});
  if (!runtime.ok()) return failed(MessageOf(runtime.status()));
  EchoServer server(options, buffers, *std::move(listener));
  VirtualThread acceptor = (*runtime)->Spawn({.name = "acceptor"}, [&] { return server.Serve(); });
  std::printf("listening %s\n", listening.c_str());
  std::fflush(stdout);

  pollfd told{.fd = stop.fd().get(), .events = POLLIN, .revents = 0};
  while (::poll(&told, 1, -1) < 0) {
  }
  // The report's memory is that of a server that still has its connections.
  acceptor.Cancel();
  const absl::Status end = acceptor.Join();
  const absl::Status shutdown = (*runtime)->Shutdown();
  if (!absl::IsCancelled(end)) return failed(MessageOf(end));
  if (!shutdown.ok()) return failed(MessageOf(shutdown));
  PrintServerReport(server.Report());
  return 0;
}

}  // namespace bobbin::bench
