// SPDX-License-Identifier: Apache-2.0
//
// bobbin_accept_load: connects to an echo server as fast as it accepts, and measures how fast that
// is.
//
// Each connection is reset as soon as it is made, so that no port stays occupied. The last of each
// batch sends one byte and waits for it: connections are accepted in the order in which they were
// made, so that the answer says that the whole batch was. Two batches are under way at a time,
// which fill no backlog. While it waits it spins, as bobbin_echo_load does.
//
// Exit codes: 0 measured, 1 an error while measuring, 2 wrong options.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/echo/process_setup.h"
#include "bench/echo/socket_address.h"
#include "bench/echo/unique_fd.h"
#include "bench/support/command_line.h"

namespace bobbin::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Two of them are well below a backlog of 4096. Not tuned.
constexpr int kBatch = 256;

class AcceptLoad {
 public:
  explicit AcceptLoad(const SocketAddress& server) : server_(server) {}

  // How many were accepted in that time. The first error ends it.
  uint64_t Run(double seconds);

  const std::string& error() const { return error_; }

 private:
  UniqueFd Connect();
  // A batch; its last connection, which has asked for an answer.
  UniqueFd ConnectBatch();
  void AwaitAnswer(const UniqueFd& fd);
  void Fail(const char* what) { error_ = std::string(what) + ": " + ErrorText(errno); }

  const SocketAddress& server_;
  std::string error_;
};

UniqueFd AcceptLoad::Connect() {
  UniqueFd fd(::socket(server_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{.l_onoff = 1, .l_linger = 0};
  if (!fd.is_open() || ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0) {
    Fail("socket");
  } else if (::connect(fd.get(), server_.get(), server_.length()) != 0) {
    Fail("connect");
  }
  return fd;
}

UniqueFd AcceptLoad::ConnectBatch() {
  for (int i = 1; i < kBatch && error_.empty(); ++i) Connect();
  UniqueFd last = Connect();
  const char byte = 1;
  if (error_.empty() && ::send(last.get(), &byte, 1, MSG_NOSIGNAL) != 1) Fail("send");
  return last;
}

void AcceptLoad::AwaitAnswer(const UniqueFd& fd) {
  char byte = 0;
  while (error_.empty()) {
    const ssize_t received = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    if (received == 1) return;
    if (received == 0 || errno != EAGAIN) Fail("receive");
  }
}

uint64_t AcceptLoad::Run(double seconds) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  uint64_t accepted = 0;
  UniqueFd before = ConnectBatch();
  while (error_.empty() && Clock::now() < end) {
    UniqueFd last = ConnectBatch();
    AwaitAnswer(before);
    accepted += kBatch;
    before = std::move(last);
  }
  return accepted;
}

int Main(int argc, char** argv) {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  double seconds = 3;
  double warmup_seconds = 1;
  int cpu = -1;
  CLI::App app("Measures how fast an echo server accepts.", "bobbin_accept_load");
  app.add_option("--port", port, "port of the server")->required();
  app.add_option("--host", host, "numeric address of the server")->capture_default_str();
  app.add_option("--seconds", seconds, "how long to measure")->capture_default_str();
  app.add_option("--warmup", warmup_seconds, "seconds before that")->capture_default_str();
  app.add_option("--cpu", cpu, "CPU to run on, -1 for any")->capture_default_str();
  if (const std::optional<int> code = ExitAfterParsing(app, argc, argv)) return *code;
  const std::optional<SocketAddress> server = SocketAddress::Parse(host, port);
  if (!server) return Refuse(app, "host " + host + ": not a numeric address");
  if (std::string why = PinToCpu(cpu); !why.empty()) return Refuse(app, why);

  AcceptLoad load(*server);
  load.Run(warmup_seconds);
  const auto begin = Clock::now();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const uint64_t accepted = load.Run(seconds);
  getrusage(RUSAGE_SELF, &after);
  const double measured = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!load.error().empty()) {
    std::fprintf(stderr, "bobbin_accept_load: %s\n", load.error().c_str());
    return 1;
  }
  const auto cpu_seconds = [](const rusage& usage) {
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  std::printf("{\"accepts_per_second\":%.1f,\"accepts\":%" PRIu64 ",\"client_cpu_share\":%.3f}\n",
              static_cast<double>(accepted) / measured, accepted,
              (cpu_seconds(after) - cpu_seconds(before)) / measured);
  return 0;
}

}  // namespace
}  // namespace bobbin::bench

int main(int argc, char** argv) { return bobbin::bench::Main(argc, argv); }
