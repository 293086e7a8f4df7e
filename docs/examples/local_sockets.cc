// SPDX-License-Identifier: Apache-2.0
//
// Connections within the machine, descriptors that go along, and pipes.

#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/pipe.h>
#include <bobbin/io/unix.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

namespace {

// [hand-over]
// Gives a descriptor to the peer, whoever that may be.
absl::Status HandOver(bobbin::io::UnixStream& peer, const bobbin::io::FileDescriptor& file) {
  const std::array<std::byte, 1> byte{};  // It goes with a byte.
  return peer.WriteAllWithDescriptors(byte, std::array{file.get()});
}

// Takes one from a peer that runs as the same user.
absl::StatusOr<bobbin::io::FileDescriptor> TakeOver(bobbin::io::UnixStream& peer) {
  BOBBIN_ASSIGN_OR_RETURN(const auto who, peer.PeerCredentials());
  if (who.user != ::getuid()) return absl::PermissionDeniedError("another user's");
  std::array<std::byte, 1> byte;
  BOBBIN_ASSIGN_OR_RETURN(auto message, peer.ReadWithDescriptors(byte));
  if (message.descriptors.size() != 1) return absl::DataLossError("not one descriptor");
  return std::move(message.descriptors[0]);  // Others would be closed here.
}
// [/hand-over]

absl::Status Main() {
  // [listen]
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::UnixListener::Bind("@example"));
  BOBBIN_ASSIGN_OR_RETURN(auto client, bobbin::io::UnixStream::Connect("@example"));
  BOBBIN_ASSIGN_OR_RETURN(bobbin::io::UnixStream server, listener.Accept());
  // [/listen]

  BOBBIN_ASSIGN_OR_RETURN(bobbin::io::Pipe pipe, bobbin::io::MakePipe());
  BOBBIN_ASSIGN_OR_RETURN(auto end, pipe.writer.Release());
  BOBBIN_RETURN_IF_ERROR(HandOver(client, end));
  BOBBIN_ASSIGN_OR_RETURN(auto taken, TakeOver(server));
  auto writer = bobbin::io::PipeWriter::Adopt(std::move(taken));
  BOBBIN_RETURN_IF_ERROR(writer.WriteAll(std::as_bytes(std::span("through", 7))));
  std::string text(7, '\0');
  BOBBIN_RETURN_IF_ERROR(pipe.reader.ReadExact(std::as_writable_bytes(std::span(text))));
  fmt::print("{}\n", text);
  return text == "through" ? absl::OkStatus() : absl::DataLossError("something else");
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
