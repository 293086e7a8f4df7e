// SPDX-License-Identifier: Apache-2.0
//
// Echo server: sends back what it receives. Built twice: as the server, which runs until it is
// killed, and with ECHO_SERVER_TEST, where a client talks to it and stops it.

// [program]
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/task_group.h>

using namespace std::chrono_literals;

absl::Status Echo(bobbin::io::TcpStream peer) {
  std::array<std::byte, 2048> buffer;
  while (true) {
    bobbin::DeadlineScope silence(30s);  // Every wait below ends by then.
    BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));
    if (received == 0) return absl::OkStatus();  // The peer has finished.
    BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::span(buffer).first(received)));
  }
}

absl::Status Serve(bobbin::io::TcpListener listener) {
  // A peer that breaks ends only itself.
  bobbin::TaskGroup peers(
      {.on_failure = bobbin::OnFailure::kLog, .placement = bobbin::Placement::kSpread});
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(bobbin::io::TcpStream peer, listener.Accept());
    peers.Spawn([peer = std::move(peer)]() mutable { return Echo(std::move(peer)); });
  }
}
// [/program]

#ifdef ECHO_SERVER_TEST

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/sched/spawn.h>

namespace {

// [client]
absl::StatusOr<std::string> Ask(const bobbin::io::SocketAddress& server, std::string_view text) {
  bobbin::DeadlineScope scope(2s);
  BOBBIN_ASSIGN_OR_RETURN(auto stream, bobbin::io::TcpStream::Connect(server));
  BOBBIN_RETURN_IF_ERROR(stream.WriteAll(std::as_bytes(std::span(text))));
  BOBBIN_RETURN_IF_ERROR(stream.ShutdownWrite());  // Nothing more will come from here.

  std::string answer(text.size(), '\0');
  BOBBIN_RETURN_IF_ERROR(stream.ReadExact(std::as_writable_bytes(std::span(answer))));
  return answer;
}
// [/client]

absl::Status Main() {
  // [stop]
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  const bobbin::io::SocketAddress address = listener.local_address();  // A free port was taken.
  bobbin::VirtualThread server =
      bobbin::Spawn({.name = "server"}, [&listener] { return Serve(std::move(listener)); });

  BOBBIN_ASSIGN_OR_RETURN(std::string answer, Ask(address, "over and over"));

  server.Cancel();  // Ends the Accept; leaving Serve ends the connections.
  const absl::Status ended = server.Join();
  // [/stop]
  fmt::print("{}: {}; then {}\n", address.ToString(), answer, ended.ToString());
  if (answer != "over and over") return absl::InternalError("the echo is another one");
  return absl::IsCancelled(ended) ? absl::OkStatus() : ended;
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }

#else

// [program]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:7000"));
  return Serve(std::move(listener));
}

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
// [/program]

#endif
