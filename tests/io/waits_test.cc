// SPDX-License-Identifier: Apache-2.0
//
// The waits of io, one by one, as docs/waits.md lists them.

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/pipe.h>
#include <bobbin/io/readiness.h>
#include <bobbin/io/resolver.h>
#include <bobbin/io/server.h>
#include <bobbin/io/signals.h>
#include <bobbin/io/tcp.h>
#include <bobbin/io/udp.h>
#include <bobbin/io/unix.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "tests/io/dns_server.h"
#include "tests/io/io_test.h"
#include "tests/support/send_signal.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

// A stream and the other end of it, which the test holds by its descriptor.
template <typename Stream>
class Line {
 public:
  Line() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    own_ = fds[0];
    peer_ = fds[1];
    stream = Stream::Adopt(own_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { ::close(peer_); }

  // Until the kernel takes no more.
  void Fill() {
    std::array<std::byte, 4096> bytes{};
    while (::send(own_, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  // Takes all that is there.
  void Drain() {
    std::array<std::byte, 4096> bytes;
    while (::recv(peer_, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  void SendFromPeer(size_t count) {
    const std::array<std::byte, 16> bytes{};
    EXPECT_EQ(::send(peer_, bytes.data(), count, 0), static_cast<ssize_t>(count));
  }

  int fd() const { return own_; }

  Stream stream;

 private:
  int own_;
  int peer_;
};
using TcpLine = Line<io::TcpStream>;

template <typename Stream>
using Reads = absl::Status (*)(Stream&, std::span<std::byte>);
template <typename Stream>
using Writes = absl::Status (*)(Stream&, std::span<const std::byte>);

template <typename Stream>
WaitStage Reading(size_t count, Reads<Stream> wait) {
  auto line = std::make_shared<Line<Stream>>();
  return {.wait =
              [line, count, wait] {
                std::array<std::byte, 16> buffer;
                return wait(line->stream, std::span(buffer).first(count));
              },
          .satisfy = [line, count] { line->SendFromPeer(count); },
          .sight_on_os_threads = Sight::kBlurred};
}

template <typename Stream>
WaitStage Writing(Writes<Stream> wait) {
  auto line = std::make_shared<Line<Stream>>();
  line->Fill();
  return {.wait =
              [line, wait] {
                const std::array<std::byte, 1> bytes{};
                return wait(line->stream, bytes);
              },
          .satisfy = [line] { line->Drain(); },
          .sight_on_os_threads = Sight::kBlurred};
}

// The calls that all streams have.
template <typename Stream>
absl::Status Read(Stream& stream, std::span<std::byte> buffer) {
  return stream.Read(buffer).status();
}
template <typename Stream>
absl::Status ReadExact(Stream& stream, std::span<std::byte> buffer) {
  return stream.ReadExact(buffer);
}
template <typename Stream>
absl::Status ReadPooled(Stream& stream, std::span<std::byte>) {
  return stream.ReadPooled().status();
}
template <typename Stream>
absl::Status WaitReadable(Stream& stream, std::span<std::byte>) {
  return stream.WaitReadable();
}
template <typename Stream>
absl::Status Write(Stream& stream, std::span<const std::byte> bytes) {
  return stream.Write(bytes).status();
}
template <typename Stream>
absl::Status WriteAll(Stream& stream, std::span<const std::byte> bytes) {
  return stream.WriteAll(bytes);
}
template <typename Stream>
absl::Status WriteCounted(Stream& stream, std::span<const std::byte> bytes) {
  const io::Progress progress = stream.WriteCounted(bytes);
  EXPECT_EQ(progress.bytes, progress.status.ok() ? bytes.size() : 0);
  return progress.status;
}

absl::Status WriteZeroCopy(io::TcpStream& stream, std::span<const std::byte> bytes) {
  const io::Progress progress = stream.WriteZeroCopy(bytes);
  EXPECT_EQ(progress.bytes, progress.status.ok() ? bytes.size() : 0);
  return progress.status;
}

using Stage = std::function<WaitStage(Runtime&)>;

template <typename Stream>
Stage ReadStage(Reads<Stream> wait, size_t count = 1) {
  return [=](Runtime&) { return Reading<Stream>(count, wait); };
}
template <typename Stream>
Stage WriteStage(Writes<Stream> wait) {
  return [=](Runtime&) { return Writing<Stream>(wait); };
}

// The same for the ends of a pipe.
Stage PipeReadStage(Reads<io::PipeReader> wait, size_t count = 1) {
  return [=](Runtime&) -> WaitStage {
    auto pipe = std::make_shared<io::Pipe>(io::MakePipe().value());
    return {.wait =
                [=] {
                  std::array<std::byte, 16> buffer;
                  return wait(pipe->reader, std::span(buffer).first(count));
                },
            .satisfy =
                [=] {
                  const std::array<std::byte, 16> bytes{};
                  EXPECT_OK(pipe->writer.WriteAll(std::span(bytes).first(count)));
                },
            .sight_on_os_threads = Sight::kBlurred};
  };
}

Stage PipeWriteStage(Writes<io::PipeWriter> wait) {
  struct Full {
    Full() {
      const std::vector<std::byte> much(size_t{1} << 20);
      DeadlineScope scope(std::chrono::milliseconds(10));
      bytes = pipe.writer.WriteCounted(much).bytes;
    }
    io::Pipe pipe = io::MakePipe().value();
    size_t bytes = 0;
  };
  return [=](Runtime&) -> WaitStage {
    auto full = std::make_shared<Full>();
    return {.wait =
                [=] {
                  const std::array<std::byte, 1> bytes{};
                  return wait(full->pipe.writer, bytes);
                },
            .satisfy =
                [=] {
                  std::vector<std::byte> buffer(full->bytes);
                  EXPECT_OK(full->pipe.reader.ReadExact(buffer));
                },
            .sight_on_os_threads = Sight::kBlurred};
  };
}

Stage DatagramStage(Reads<io::UdpSocket> wait, io::Receiving receiving = io::Receiving::kOnCall) {
  struct Ends {
    explicit Ends(io::Receiving receiving)
        : server(io::UdpSocket::Bind("127.0.0.1:0", {.receiving = receiving}).value()) {}
    io::UdpSocket server;
    io::UdpSocket client = io::UdpSocket::Connect(server.local_address().value()).value();
  };
  return [=](Runtime&) -> WaitStage {
    auto ends = std::make_shared<Ends>(receiving);
    return {.wait =
                [=] {
                  std::array<std::byte, 16> buffer;
                  return wait(ends->server, buffer);
                },
            .satisfy = [=] { EXPECT_OK(ends->client.Send(std::array{std::byte{1}})); },
            .sight_on_os_threads = Sight::kBlurred};
  };
}

WaitStage AcceptingUnix(Runtime&) {
  static std::atomic<int> number{0};
  struct Open {
    std::string name =
        "@bobbin-waits-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
    io::UnixListener listener = io::UnixListener::Bind(name).value();
    io::UnixStream client;
  };
  auto all = std::make_shared<Open>();
  return {.wait = [all] { return all->listener.Accept().status(); },
          .satisfy = [all] { all->client = io::UnixStream::Connect(all->name).value(); },
          .sight_on_os_threads = Sight::kBlurred};
}

// A listener whose queue is full.
WaitStage ConnectingUnix(Runtime&) {
  static std::atomic<int> number{0};
  struct Full {
    std::string name =
        "@bobbin-connects-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
    io::UnixListener listener = io::UnixListener::Bind(name, {.backlog = 0}).value();
    io::UnixStream first = io::UnixStream::Connect(name).value();
    io::UnixStream accepted;
  };
  auto all = std::make_shared<Full>();
  return {.wait = [all] { return io::UnixStream::Connect(all->name).status(); },
          .satisfy = [all] { all->accepted = all->listener.Accept().value(); },
          .rest = Rest::kBroken};
}

WaitStage Accepting(Runtime&) {
  struct Open {
    io::TcpListener listener = io::TcpListener::Bind("127.0.0.1:0").value();
    io::TcpStream client;
  };
  auto all = std::make_shared<Open>();
  return {
      .wait = [all] { return all->listener.Accept().status(); },
      .satisfy =
          [all] { all->client = io::TcpStream::Connect(all->listener.local_address()).value(); },
      .sight_on_os_threads = Sight::kBlurred};
}

// A listener whose queue is full: the kernel drops what a further client sends, and the client
// tries again after a second.
WaitStage Connecting(Runtime&) {
  struct Full {
    io::TcpListener listener = io::TcpListener::Bind("127.0.0.1:0", {.backlog = 0}).value();
    io::TcpStream first = io::TcpStream::Connect(listener.local_address()).value();
    io::TcpStream accepted;
  };
  auto all = std::make_shared<Full>();
  return {.wait = [all] { return io::TcpStream::Connect(all->listener.local_address()).status(); },
          .satisfy = [all] { all->accepted = all->listener.Accept().value(); },
          .sight_on_os_threads = Sight::kBlurred,
          .pace = Pace::kSlow};
}

WaitStage AwaitingReadable(Runtime&) {
  auto line = std::make_shared<TcpLine>();
  return {.wait =
              [line] {
                const absl::Status status = io::WaitReadable(line->fd());
                std::array<std::byte, 1> byte;
                if (!status.ok()) return status;
                EXPECT_EQ(::recv(line->fd(), byte.data(), 1, MSG_DONTWAIT), 1);
                return status;
              },
          .satisfy = [line] { line->SendFromPeer(1); },
          .sight_on_os_threads = Sight::kBlurred};
}

WaitStage AwaitingWritable(Runtime&) {
  auto line = std::make_shared<TcpLine>();
  line->Fill();
  return {.wait = [line] { return io::WaitWritable(line->fd()); },
          .satisfy = [line] { line->Drain(); },
          .sight_on_os_threads = Sight::kBlurred};
}

// A name whose server takes its time.
WaitStage Resolving(Runtime&) {
  struct Asked {
    DnsServer server{[](const DnsAsked&) -> DnsReply {
      return {.addresses = {"192.0.2.1", "2001:db8::1"}, .delivery = DnsReply::Delivery::kHeld};
    }};
    io::Resolver resolver{{.servers = {server.address()}, .attempt = std::chrono::hours(1)}};
  };
  auto all = std::make_shared<Asked>();
  return {.wait = [all] { return all->resolver.Resolve("a.test.").status(); },
          .satisfy = [all] { all->server.Release(); },
          .sight_on_os_threads = Sight::kBlurred};
}

// A server with a connection, whose handler stays until the event is set.
struct BusyServer {
  explicit BusyServer(Runtime& where) : runtime(where) {
    OnTheRuntime([this] {
      server = std::make_unique<io::Server>(io::ServerOptions{},
                                            io::TcpListener::Bind("127.0.0.1:0").value(),
                                            [this](io::ServerConnection&) {
                                              const CancelShield shield;
                                              is_busy.Set();
                                              return go.Wait();
                                            });
      client = io::TcpStream::Connect(server->local_address()).value();
      EXPECT_OK(is_busy.Wait());
    });
  }
  ~BusyServer() {
    go.Set();
    OnTheRuntime([this] { server.reset(); });
  }
  void OnTheRuntime(std::function<void()> body) {
    VirtualThread thread = runtime.Spawn([&] { body(); });
    const CancelShield shield;
    EXPECT_OK(thread.Join());
  }
  Runtime& runtime;
  Event go;
  Event is_busy;
  std::unique_ptr<io::Server> server;
  io::TcpStream client;
};

WaitStage AwaitingAServer(Runtime& runtime) {
  auto all = std::make_shared<BusyServer>(runtime);
  return {.wait = [all] { return all->server->Wait(); },
          .satisfy =
              [all] {
                all->go.Set();
                all->OnTheRuntime([all] { all->server->Drain(); });
              }};
}

WaitStage DestroyingAServer(Runtime& runtime) {
  auto all = std::make_shared<BusyServer>(runtime);
  const io::SocketAddress local = all->server->local_address();
  return {.wait =
              [all] {
                all->server.reset();
                return absl::OkStatus();
              },
          .satisfy = [all] { all->go.Set(); },
          .waiters = Waiters::kOfRuntime,
          // Before it waits for the handlers it has waited for who accepts, and let go of the port.
          .has_begun = [local] { return io::TcpListener::Bind(local).ok(); }};
}

WaitStage ConnectingByName(Runtime&) {
  struct Asked {
    DnsServer server{[](const DnsAsked&) -> DnsReply {
      return {.addresses = {"127.0.0.1"}, .delivery = DnsReply::Delivery::kHeld};
    }};
    io::Resolver resolver{{.servers = {server.address()}, .attempt = std::chrono::hours(1)}};
    io::TcpListener listener = io::TcpListener::Bind("127.0.0.1:0").value();
  };
  auto all = std::make_shared<Asked>();
  return {.wait =
              [all] {
                return io::TcpStream::Connect({.resolver = &all->resolver}, "a.test.",
                                              all->listener.local_address().port())
                    .status();
              },
          .satisfy = [all] { all->server.Release(); },
          .sight_on_os_threads = Sight::kBlurred};
}

WaitStage AwaitingSignal(Runtime&) {
  // One that nobody has waited for may come when the stage has gone.
  [[maybe_unused]] static const auto before = ::signal(SIGUSR1, SIG_IGN);
  auto signals = std::make_shared<io::Signals>(io::Signals::Open({SIGUSR1}).value());
  return {.wait = [signals] { return signals->Wait().status(); },
          .satisfy = [] { SendSignal(SIGUSR1); },
          .sight_on_os_threads = Sight::kBlurred};
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"TcpStream::Connect", Connecting},
      {"TcpStream::Read", ReadStage<io::TcpStream>(Read)},
      {"TcpStream::ReadPooled", ReadStage<io::TcpStream>(ReadPooled)},
      {"TcpStream::WaitReadable", ReadStage<io::TcpStream>(WaitReadable)},
      {"TcpStream::ReadExact", ReadStage<io::TcpStream>(ReadExact, 2)},
      {"TcpStream::Write", WriteStage<io::TcpStream>(Write)},
      {"TcpStream::WriteAll", WriteStage<io::TcpStream>(WriteAll)},
      {"TcpStream::WriteCounted", WriteStage<io::TcpStream>(WriteCounted)},
      {"TcpStream::WriteZeroCopy", WriteStage<io::TcpStream>(WriteZeroCopy)},
      {"TcpStream::Connect, by name", ConnectingByName},
      {"TcpListener::Accept", Accepting},
      {"Resolver::Resolve", Resolving},
      {"Server::Wait", AwaitingAServer},
      {"Server::~Server", DestroyingAServer},
      {"UnixStream::Connect", ConnectingUnix},
      {"UnixStream::Read", ReadStage<io::UnixStream>(Read)},
      {"UnixStream::ReadPooled", ReadStage<io::UnixStream>(ReadPooled)},
      {"UnixStream::WaitReadable", ReadStage<io::UnixStream>(WaitReadable)},
      {"UnixStream::ReadExact", ReadStage<io::UnixStream>(ReadExact, 2)},
      {"UnixStream::Write", WriteStage<io::UnixStream>(Write)},
      {"UnixStream::WriteAll", WriteStage<io::UnixStream>(WriteAll)},
      {"UnixStream::WriteCounted", WriteStage<io::UnixStream>(WriteCounted)},
      {"UnixStream::ReadWithDescriptors",
       ReadStage<io::UnixStream>([](io::UnixStream& stream, std::span<std::byte> buffer) {
         return stream.ReadWithDescriptors(buffer).status();
       })},
      {"UnixStream::WriteAllWithDescriptors",
       WriteStage<io::UnixStream>([](io::UnixStream& stream, std::span<const std::byte> bytes) {
         return stream.WriteAllWithDescriptors(bytes, {});
       })},
      {"UnixListener::Accept", AcceptingUnix},
      {"PipeReader::Read", PipeReadStage(Read)},
      {"PipeReader::ReadExact", PipeReadStage(ReadExact, 2)},
      {"PipeWriter::Write", PipeWriteStage(Write)},
      {"PipeWriter::WriteAll", PipeWriteStage(WriteAll)},
      {"PipeWriter::WriteCounted", PipeWriteStage(WriteCounted)},
      {"Signals::Wait", AwaitingSignal},
      {"UdpSocket::Receive", DatagramStage([](io::UdpSocket& socket, std::span<std::byte> buffer) {
         return socket.Receive(buffer).status();
       })},
      {"UdpSocket::ReceiveBatch",
       DatagramStage([](io::UdpSocket& socket, std::span<std::byte> buffer) {
         std::array<io::DatagramSlot, 1> slots;
         slots[0].buffer = buffer;
         return socket.ReceiveBatch(slots).status();
       })},
      {"UdpSocket::Receive (ahead)",
       DatagramStage([](io::UdpSocket& socket,
                        std::span<std::byte> buffer) { return socket.Receive(buffer).status(); },
                     io::Receiving::kAhead)},
      {"WaitReadable", AwaitingReadable},
      {"WaitWritable", AwaitingWritable},
  };
  return stages;
}

BOBBIN_IO_FOREIGN_TEST(IoWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("io", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
