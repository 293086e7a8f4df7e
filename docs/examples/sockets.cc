// SPDX-License-Identifier: Apache-2.0
//
// Streams with options, and writes that end in the middle.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

namespace {

using namespace std::chrono_literals;

// [options]
constexpr bobbin::io::TcpOptions kPatient = {
    // A peer that has vanished is missed after a minute and a half,
    .keep_alive = bobbin::io::KeepAlive{.idle = 60s, .interval = 10s, .questions_max = 3},
    // and one that acknowledges nothing after twenty seconds.
    .unanswered_max = 20s};

absl::StatusOr<bobbin::io::TcpListener> Listen() {
  return bobbin::io::TcpListener::Bind("127.0.0.1:0", {.streams = kPatient});
}
// [/options]

// [parts]
absl::Status Answer(bobbin::io::TcpStream& peer, std::string_view head,
                    std::span<const std::byte> body) {
  const std::array parts = {std::as_bytes(std::span(head)), body};
  return peer.WriteAll(parts);  // One system call, or one entry of the ring, and no copy.
}
// [/parts]

// [counted]
// Sends what a second is enough for, and returns the rest.
absl::StatusOr<std::span<const std::byte>> SendForASecond(bobbin::io::TcpStream& peer,
                                                          std::span<const std::byte> bytes) {
  bobbin::DeadlineScope scope(1s);
  const bobbin::io::Progress written = peer.WriteCounted(bytes);
  if (!written.status.ok() && !absl::IsDeadlineExceeded(written.status)) return written.status;
  return bytes.subspan(written.bytes);
}
// [/counted]

// [pooled]
// Holds no buffer while it waits, so that a connection at rest takes little more than its stack.
absl::Status Echo(bobbin::io::TcpStream& peer) {
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const bobbin::io::PooledBytes received, peer.ReadPooled());
    if (received.empty()) return absl::OkStatus();
    BOBBIN_RETURN_IF_ERROR(peer.WriteAll(received.bytes()));
  }  // Here the buffer goes back.
}
// [/pooled]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(auto listener, Listen());
  BOBBIN_ASSIGN_OR_RETURN(auto client, bobbin::io::TcpStream::Connect(listener.local_address()));
  BOBBIN_ASSIGN_OR_RETURN(auto server, listener.Accept());

  const std::vector<std::byte> body(100);
  BOBBIN_RETURN_IF_ERROR(Answer(server, "head", body));
  std::array<std::byte, 104> answer;
  BOBBIN_RETURN_IF_ERROR(client.ReadExact(answer));

  const std::vector<std::byte> much(size_t{1} << 16);
  BOBBIN_ASSIGN_OR_RETURN(const auto rest, SendForASecond(server, much));
  fmt::print("{} bytes are left\n", rest.size());
  server.Close();

  BOBBIN_ASSIGN_OR_RETURN(auto asking, bobbin::io::TcpStream::Connect(listener.local_address()));
  BOBBIN_ASSIGN_OR_RETURN(auto echoing, listener.Accept());
  BOBBIN_RETURN_IF_ERROR(asking.WriteAll(body));
  BOBBIN_RETURN_IF_ERROR(asking.ShutdownWrite());
  BOBBIN_RETURN_IF_ERROR(Echo(echoing));
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
