// SPDX-License-Identifier: Apache-2.0
//
// The waits of TLS, one by one, as docs/waits.md lists them.

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/io/tls_stream.h>
#include <bobbin/sched/runtime.h>

#include "tests/io/io_test.h"
#include "tests/io/tls_test.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

// One of each for all: a client that knows a session resumes it, which makes no difference here.
const io::TlsServerContext& Server() {
  static const io::TlsServerContext context = ServerContext();
  return context;
}
const io::TlsClientContext& Client() {
  static const io::TlsClientContext context = ClientContext();
  return context;
}

struct Sockets {
  Sockets() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0); }
  std::array<int, 2> fds;
};

// A connection; `own` is who waits.
struct Line {
  explicit Line(Runtime& runtime) {
    VirtualThread other = runtime.Spawn([this] {
      auto accepted = io::TlsStream::Accept(Server(), io::TcpStream::Adopt(sockets.fds[1]));
      EXPECT_OK(accepted);
      peer = *std::move(accepted);
    });
    auto connected =
        io::TlsStream::Connect(Client(), "localhost", io::TcpStream::Adopt(sockets.fds[0]));
    EXPECT_OK(connected);
    own = *std::move(connected);
    EXPECT_OK(other.Join());
  }

  // Until the kernel takes no more. What it gets is no TLS, and nobody reads it as that.
  void Fill() {
    std::array<std::byte, 4096> bytes{};
    while (::send(sockets.fds[0], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  // Takes all that is there, as it is.
  void Drain() {
    std::array<std::byte, 4096> bytes;
    while (::recv(sockets.fds[1], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }

  Sockets sockets;
  io::TlsStream own;
  io::TlsStream peer;
};

using Stage = std::function<WaitStage(Runtime&)>;

Stage Reading(absl::Status (*wait)(io::TlsStream&, std::span<std::byte>), size_t count) {
  return [=](Runtime& runtime) -> WaitStage {
    auto line = std::make_shared<Line>(runtime);
    return {.wait =
                [=] {
                  std::array<std::byte, 16> buffer;
                  return wait(line->own, std::span(buffer).first(count));
                },
            .satisfy =
                [=] {
                  const std::array<std::byte, 16> bytes{};
                  EXPECT_OK(line->peer.WriteAll(std::span(bytes).first(count)));
                },
            .sight_on_os_threads = Sight::kBlurred};
  };
}

Stage Writing(absl::Status (*wait)(io::TlsStream&, std::span<const std::byte>)) {
  return [=](Runtime& runtime) -> WaitStage {
    auto line = std::make_shared<Line>(runtime);
    line->Fill();
    return {.wait =
                [=] {
                  const std::array<std::byte, 1> bytes{};
                  return wait(line->own, bytes);
                },
            .satisfy = [=] { line->Drain(); },
            .sight_on_os_threads = Sight::kBlurred};
  };
}

// One side shakes hands as the wait, and the other one when it is let through.
Stage Shaking(std::function<absl::Status(io::TcpStream)> own,
              std::function<absl::Status(io::TcpStream)> other) {
  struct Ends {
    Sockets sockets;
    io::TcpStream own = io::TcpStream::Adopt(sockets.fds[0]);
    io::TcpStream other = io::TcpStream::Adopt(sockets.fds[1]);
    VirtualThread thread;
  };
  return [=](Runtime& runtime) -> WaitStage {
    auto ends = std::make_shared<Ends>();
    return {.wait = [=] { return own(std::move(ends->own)); },
            .satisfy =
                [=, &runtime] {
                  // How it ends is the other side's to say.
                  ends->thread = runtime.Spawn(
                      [other, all = ends.get()] { other(std::move(all->other)).IgnoreError(); });
                },
            .sight_on_os_threads = Sight::kBlurred,
            .again = Again::kIsNotDone};
  };
}

absl::Status Accept(io::TcpStream stream) {
  return io::TlsStream::Accept(Server(), std::move(stream)).status();
}
absl::Status Connect(io::TcpStream stream) {
  return io::TlsStream::Connect(Client(), "localhost", std::move(stream)).status();
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"TlsStream::Accept", Shaking(Accept, Connect)},
      {"TlsStream::Connect", Shaking(Connect, Accept)},
      {"TlsStream::Read",
       Reading([](io::TlsStream& stream,
                  std::span<std::byte> buffer) { return stream.Read(buffer).status(); },
               1)},
      {"TlsStream::ReadExact",
       Reading([](io::TlsStream& stream,
                  std::span<std::byte> buffer) { return stream.ReadExact(buffer); },
               2)},
      {"TlsStream::Write", Writing([](io::TlsStream& stream, std::span<const std::byte> bytes) {
         return stream.Write(bytes).status();
       })},
      {"TlsStream::WriteAll", Writing([](io::TlsStream& stream, std::span<const std::byte> bytes) {
         return stream.WriteAll(bytes);
       })},
      {"TlsStream::WriteCounted",
       Writing([](io::TlsStream& stream, std::span<const std::byte> bytes) {
         const io::Progress progress = stream.WriteCounted(bytes);
         EXPECT_LE(progress.bytes, bytes.size());
         return progress.status;
       })},
      {"TlsStream::ShutdownWrite", Writing([](io::TlsStream& stream, std::span<const std::byte>) {
         return stream.ShutdownWrite();
       })},
  };
  return stages;
}

BOBBIN_IO_FOREIGN_TEST(TlsWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("tls", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
