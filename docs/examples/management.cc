// SPDX-License-Identifier: Apache-2.0
//
// A program that can be looked into over HTTP, also while its only carrier is stuck.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/io.h>
#include <bobbin/io/management_server.h>
#include <bobbin/sched/runtime.h>

namespace {

using namespace std::chrono_literals;

// Blocks its OS thread, and with it the carrier: what a program should not do.
std::string AskBlocking(const bobbin::io::SocketAddress& address, std::string_view page) {
  const bobbin::io::FileDescriptor fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOBBIN_CHECK(connect(fd.get(), address.data(), address.bytes()) == 0, "nobody listens");
  const std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", page);
  BOBBIN_CHECK(write(fd.get(), request.data(), request.size()) > 0, "nobody reads");
  std::string answer;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t received = read(fd.get(), buffer.data(), buffer.size());
    if (received <= 0) return answer;
    answer.append(buffer.data(), static_cast<size_t>(received));
  }
}

absl::Status Main() {
  // [start]
  BOBBIN_ASSIGN_OR_RETURN(auto management, bobbin::io::ManagementServer::Start(
                                               *bobbin::CurrentRuntimeOrNull(),
                                               {.listen = "127.0.0.1:0", .stuck_after = 500ms}));
  const bobbin::io::SocketAddress address = management->local_address();
  bobbin::io::ManagementServer::StopLast(std::move(management));
  // [/start]

  fmt::print("{}\n", AskBlocking(address, "/health"));
  const std::string dump = AskBlocking(address, "/dump");
  BOBBIN_CHECK(dump.starts_with("HTTP/1.1 200 OK"), "there is no dump");
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main, {.carriers = 1, .poller = bobbin::io::AutoPoller()}); }
