// SPDX-License-Identifier: Apache-2.0
//
// A server that answers datagrams.

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/udp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

namespace {

using namespace std::chrono_literals;

// [server]
// Sends every datagram back. One system call takes as many as are there.
absl::Status Echo(bobbin::io::UdpSocket& socket) {
  std::array<std::array<std::byte, 2048>, 16> buffers;
  std::array<bobbin::io::DatagramSlot, 16> slots;
  for (size_t i = 0; i < slots.size(); ++i) slots[i].buffer = buffers[i];
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t count, socket.ReceiveBatch(slots));
    for (const auto& [buffer, datagram] : std::span(slots).first(count)) {
      if (datagram.is_truncated) continue;
      socket.SendTo(buffer.first(datagram.bytes), datagram.peer).IgnoreError();
    }
  }
}
// [/server]

// [client]
// Datagrams may be lost: asks three times, and gives up.
absl::StatusOr<std::string> Ask(const bobbin::io::SocketAddress& server, std::string_view text) {
  BOBBIN_ASSIGN_OR_RETURN(auto socket, bobbin::io::UdpSocket::Connect(server));
  std::array<std::byte, 2048> buffer;
  for (int attempt = 0; attempt < 3; ++attempt) {
    BOBBIN_RETURN_IF_ERROR(socket.Send(std::as_bytes(std::span(text))));
    bobbin::DeadlineScope scope(500ms);
    const auto answer = socket.Receive(buffer);
    if (absl::IsDeadlineExceeded(answer.status())) continue;
    BOBBIN_RETURN_IF_ERROR(answer.status());  // UNAVAILABLE: nobody is there.
    return std::string(reinterpret_cast<const char*>(buffer.data()), answer->bytes);
  }
  return absl::UnavailableError("no answer");
}
// [/client]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(auto socket, bobbin::io::UdpSocket::Bind("127.0.0.1:0"));
  BOBBIN_ASSIGN_OR_RETURN(const auto address, socket.local_address());
  bobbin::VirtualThread server = bobbin::Spawn([&socket] { return Echo(socket); });
  BOBBIN_ASSIGN_OR_RETURN(const std::string answer, Ask(address, "over and over"));
  server.Cancel();
  server.Join().IgnoreError();
  fmt::print("{}\n", answer);
  return answer == "over and over" ? absl::OkStatus() : absl::InternalError("another echo");
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
