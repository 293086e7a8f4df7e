// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/kept_lines.h"
#include "tests/support/leak_check.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

io::TcpListener Listen() {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  EXPECT_OK(listener);
  return *std::move(listener);
}

// Connects and returns the number that the server sent, or why not.
absl::StatusOr<int> AskForNumber(const io::SocketAddress& address) {
  BOBBIN_ASSIGN_OR_RETURN(io::TcpStream stream, io::TcpStream::Connect(address));
  int number = 0;
  BOBBIN_RETURN_IF_ERROR(stream.ReadExact(std::as_writable_bytes(std::span(&number, 1))));
  return number;
}

absl::Status SendNumber(io::TcpStream stream, int number) {
  return stream.WriteAll(std::as_bytes(std::span(&number, 1)));
}

// --- What it is for

BOBBIN_IO_TEST(TcpListenerTest, BindTakesAFreePortAndTellsWhich) {
  const io::TcpListener listener = Listen();
  EXPECT_NE(listener.local_address().port(), 0);
}

BOBBIN_IO_TEST(TcpListenerTest, AnAddressInUseIsAnErrorThatSaysWhich) {
  const io::TcpListener listener = Listen();
  const auto second = io::TcpListener::Bind(listener.local_address());
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(MessageOf(second.status()),
            "listen " + listener.local_address().ToString() + ": address already in use");
  EXPECT_THAT(io::TcpListener::Bind("nonsense"), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(TcpListenerTest, ReusePortLetsSeveralListen) {
  const io::TcpListenerOptions options{.reuse_port = true};
  auto first = io::TcpListener::Bind("127.0.0.1:0", options);
  ASSERT_OK(first);
  EXPECT_OK(io::TcpListener::Bind(first->local_address(), options));
}

BOBBIN_IO_TEST(TcpListenerTest, ConnectionsComeInOrder) {
  io::TcpListener listener = Listen();
  std::vector<io::TcpStream> clients;
  for (char i = 0; i < 50; ++i) {
    auto client = io::TcpStream::Connect(listener.local_address());
    ASSERT_OK(client);
    ASSERT_OK(client->WriteAll(Bytes(std::string(1, i))));
    clients.push_back(*std::move(client));
  }
  for (char i = 0; i < 50; ++i) {
    auto peer = listener.Accept();
    ASSERT_OK(peer);
    EXPECT_EQ(ReadText(*peer, 1), std::string(1, i));
  }
}

BOBBIN_IO_TEST(TcpListenerTest, AcceptorsOnAllCarriersAreServed) {
  io::TcpListener listener = Listen();
  const int acceptors = 8;
  const int connections = Rounds(800);
  std::atomic<int> next{0};
  TaskGroup servers({.placement = Placement::kSpread});
  for (int i = 0; i < acceptors; ++i) {
    servers.Spawn([&]() -> absl::Status {
      while (true) {
        auto peer = listener.Accept();
        if (absl::IsAborted(peer.status())) return absl::OkStatus();
        BOBBIN_RETURN_IF_ERROR(peer.status());
        BOBBIN_RETURN_IF_ERROR(SendNumber(*std::move(peer), next++));
      }
    });
  }
  std::set<int> numbers;
  Mutex mutex;
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < 20; ++i) {
    clients.Spawn([&, i]() -> absl::Status {
      for (int k = i; k < connections; k += 20) {
        BOBBIN_ASSIGN_OR_RETURN(const int number, AskForNumber(listener.local_address()));
        MutexLock hold(mutex);
        numbers.insert(number);
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(clients.Wait());
  listener.Close();
  EXPECT_OK(servers.Wait());
  EXPECT_EQ(numbers.size(), static_cast<size_t>(connections));
}

BOBBIN_IO_TEST(TcpListenerTest, AcceptorsAreServedFirstComeFirstServed) {
  io::TcpListener listener = Listen();
  std::vector<WaitProbe> probes(4);
  TaskGroup servers({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    servers.Spawn([&, i]() -> absl::Status {
      probes[static_cast<size_t>(i)].Attach();
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
      return SendNumber(std::move(peer), i);
    });
    probes[static_cast<size_t>(i)].AwaitParked();
  }
  for (int i = 0; i < 4; ++i) EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(i));
  EXPECT_OK(servers.Wait());
}

// More connections than are accepted ahead: the listener stops and goes on by itself.
BOBBIN_IO_TEST(TcpListenerTest, ABurstBeyondTheQueueIsServedCompletely) {
  io::TcpListener listener = Listen();
  const int connections = kUnderThreadSanitizer ? 400 : 1500;
  for (int round = 0; round < 2; ++round) {
    std::vector<io::TcpStream> clients;
    // The first acceptor starts the stream of connections, then nobody takes any for a while.
    VirtualThread first = Spawn({.placement = Placement::kSpread},
                                [&]() -> absl::Status { return listener.Accept().status(); });
    for (int i = 0; i < connections; ++i) {
      auto client = io::TcpStream::Connect(listener.local_address());
      ASSERT_OK(client);
      clients.push_back(*std::move(client));
    }
    EXPECT_OK(first.Join());
    for (int i = 1; i < connections; ++i) {
      auto peer = listener.Accept();
      ASSERT_OK(peer);
    }
  }
}

// --- Deadlines and cancellation

// Where a group has no place for one more, the loop waits, and the peers with it: in the backlog.
BOBBIN_IO_TEST(TcpListenerTest, AnAcceptLoopAtItsLimitSlowsDownAndLosesNoConnection) {
  constexpr size_t kLiveMax = 10;
  const int connections = Rounds(2000);
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  std::atomic<size_t> live{0};
  std::atomic<size_t> live_most{0};
  VirtualThread server = Spawn([&]() -> absl::Status {
    TaskGroup peers({.live_max = kLiveMax});
    for (int i = 0; i < connections; ++i) {
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener->Accept());
      peers.Spawn([&, peer = std::move(peer)]() mutable -> absl::Status {
        const size_t now = live.fetch_add(1) + 1;
        size_t most = live_most;
        while (now > most && !live_most.compare_exchange_weak(most, now)) continue;
        std::array<std::byte, 1> byte;
        BOBBIN_RETURN_IF_ERROR(peer.ReadExact(byte));
        Yield();
        absl::Status written = peer.WriteAll(byte);
        live.fetch_sub(1);
        return written;
      });
    }
    return peers.Wait();
  });
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < connections; ++i) {
    clients.Spawn({.name = "client"}, [&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream stream,
                              io::TcpStream::Connect(listener->local_address()));
      BOBBIN_RETURN_IF_ERROR(stream.WriteAll(Bytes("x")));
      std::array<std::byte, 1> byte;
      return stream.ReadExact(byte);
    });
  }
  EXPECT_OK(clients.Wait());
  EXPECT_OK(server.Join());
  EXPECT_LE(live_most, kLiveMax);
}

BOBBIN_IO_TEST(TcpListenerTest, DeadlineEndsAnAccept) {
  io::TcpListener listener = Listen();
  for (int i = 0; i < 3; ++i) {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(listener.Accept(), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(listener.Accept(), StatusIs(kDeadlineExceeded));
  }
  VirtualThread server = Spawn([&]() -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
    return SendNumber(std::move(peer), 7);
  });
  EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(7));
  EXPECT_OK(server.Join());
}

BOBBIN_IO_TEST(TcpListenerTest, AcceptsThatAreCutShortLoseNoConnection) {
  io::TcpListener listener = Listen();
  const size_t descriptors = OpenDescriptors();
  const int connections = Rounds(3000);
  std::atomic<bool> is_done{false};
  TaskGroup servers({.placement = Placement::kSpread});
  for (int i = 0; i < 3; ++i) {
    servers.Spawn([&, random = random().Fork()]() mutable -> absl::Status {
      while (!is_done) {
        DeadlineScope scope(microseconds(random.Between(0, 1500)));
        auto peer = listener.Accept();
        if (absl::IsDeadlineExceeded(peer.status())) continue;
        BOBBIN_RETURN_IF_ERROR(peer.status());
        CancelShield shield;  // What was accepted is served, whatever the time.
        BOBBIN_RETURN_IF_ERROR(SendNumber(*std::move(peer), 1));
      }
      return absl::OkStatus();
    });
  }
  std::atomic<int> served{0};
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < 10; ++i) {
    clients.Spawn([&, i, random = random().Fork()]() mutable -> absl::Status {
      for (int k = i; k < connections; k += 10) {
        BOBBIN_ASSIGN_OR_RETURN(const int number, AskForNumber(listener.local_address()));
        served += number;
        BOBBIN_RETURN_IF_ERROR(SleepFor(microseconds(random.Between(0, 1500))));
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(clients.Wait());
  is_done = true;
  EXPECT_OK(servers.Wait());
  EXPECT_EQ(served, connections);
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

BOBBIN_IO_TEST(TcpListenerTest, CancelledAcceptorsHandTheListenerOn) {
  io::TcpListener listener = Listen();
  for (int round = 0; round < Rounds(100); ++round) {
    WaitProbe first_waits, second_waits;
    VirtualThread first = Spawn({.placement = Placement::kSpread}, [&] {
      first_waits.Attach();
      return listener.Accept().status();
    });
    first_waits.AwaitParked();
    VirtualThread second = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      second_waits.Attach();
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
      return SendNumber(std::move(peer), round);
    });
    second_waits.AwaitParked();
    first.Cancel();
    EXPECT_THAT(first.Join(), StatusIs(kCancelled));
    EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(round));
    EXPECT_OK(second.Join());
  }
}

// --- Closing

BOBBIN_IO_TEST(TcpListenerTest, CloseEndsAcceptorsOnAllCarriers) {
  for (int round = 0; round < Rounds(50); ++round) {
    io::TcpListener listener = Listen();
    std::vector<WaitProbe> probes(5);
    TaskGroup servers({.placement = Placement::kSpread});
    for (WaitProbe& probe : probes) {
      servers.Spawn([&] {
        probe.Attach();
        const auto peer = listener.Accept();
        EXPECT_THAT(peer, StatusIs(kAborted));
        EXPECT_EQ(MessageOf(peer.status()), "accept: this side has closed it");
      });
    }
    for (const WaitProbe& probe : probes) probe.AwaitParked();
    listener.Close();
    EXPECT_OK(servers.Wait());
    EXPECT_THAT(listener.Accept(), StatusIs(kAborted));
    EXPECT_THAT(io::TcpStream::Connect(listener.local_address()), StatusIs(kUnavailable));
  }
}

BOBBIN_IO_TEST(TcpListenerTest, CloseClosesConnectionsThatNobodyAccepted) {
  io::TcpListener listener = Listen();
  VirtualThread first = Spawn([&] { return listener.Accept().status(); });
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 20; ++i) {
    auto client = io::TcpStream::Connect(listener.local_address());
    ASSERT_OK(client);
    clients.push_back(*std::move(client));
  }
  EXPECT_OK(first.Join());
  listener.Close();
  for (io::TcpStream& client : clients) {
    // Those in the listener's queue see an end, those in the kernel's a reset.
    std::array<std::byte, 1> buffer;
    const auto received = client.Read(buffer);
    EXPECT_TRUE((received.ok() && *received == 0) || absl::IsUnavailable(received.status()))
        << received.status().ToString();
  }
}

BOBBIN_IO_TEST(TcpListenerTest, ItMayGoWhileConnectionsArrive) {
  for (int round = 0; round < Rounds(100); ++round) {
    io::TcpListener listener = Listen();
    const io::SocketAddress address = listener.local_address();
    TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
    group.Spawn([&] {
      while (listener.Accept().ok()) {
      }
    });
    for (int i = 0; i < 4; ++i) {
      group.Spawn([&] {
        while (io::TcpStream::Connect(address).ok()) {
        }
      });
    }
    for (uint64_t spins = random().Below(50); spins > 0; --spins) Yield();
    listener.Close();
    EXPECT_OK(group.Wait());
  }
}

// The operation that brings connections belongs to a carrier; its end must not disturb the
// listener, nor must it that the next one asks the kernel in another way.
TEST(TcpListenerTest, ItOutlivesTheRuntimeThatServedIt) {
  io::TcpListener listener = Listen();
  for (int round = 0; round < 6; ++round) {
    const std::vector<Backend> backends = Backends();
    const Backend backend = backends[static_cast<size_t>(round) % backends.size()];
    {
      Runtime runtime({.carriers = 2, .poller = MakePollers(backend)});
      VirtualThread server = runtime.Spawn([&]() -> absl::Status {
        BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
        return SendNumber(std::move(peer), round);
      });
      VirtualThread client = runtime.Spawn(
          [&] { EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(round)); });
      EXPECT_OK(server.Join());
      EXPECT_OK(client.Join());
      EXPECT_OK(runtime.Shutdown());
    }
    // Without a runtime, a foreign thread serves itself.
    OsThreads threads;
    threads.Start([&] { EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(9)); });
    auto peer = listener.Accept();
    ASSERT_OK(peer);
    EXPECT_OK(SendNumber(*std::move(peer), 9));
  }
}

// --- Trouble

// Restores the limit of descriptors at its end.
class DescriptorLimit {
 public:
  DescriptorLimit() { EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

  void AllowNoMore() {
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  void AllowAll() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

BOBBIN_IO_TEST(TcpListenerTest, OutOfDescriptorsItWaitsAndThenGoesOn) {
  DescriptorLimit limit;
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < 3; ++round) {
    // The last round's listener is closed when its carrier has let go of it.
    AwaitTrue([&] { return OpenDescriptors() == descriptors; });
    // A new one each time: an accept in flight keeps the limit that it found.
    io::TcpListener listener = Listen();
    auto client = io::TcpStream::Connect(listener.local_address());
    ASSERT_OK(client);
    limit.AllowNoMore();
    WaitProbe probe;
    std::atomic<bool> is_accepted{false};
    VirtualThread server = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      probe.Attach();
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
      is_accepted = true;
      return SendNumber(std::move(peer), round);
    });
    probe.AwaitParked();
    ASSERT_OK(SleepFor(milliseconds(40)));
    EXPECT_FALSE(is_accepted);
    limit.AllowAll();
    int number = -1;
    EXPECT_OK(client->ReadExact(std::as_writable_bytes(std::span(&number, 1))));
    EXPECT_EQ(number, round);
    EXPECT_OK(server.Join());
    EXPECT_GT(runtime().Statistics().poller.accept_pauses, round);
  }
}

BOBBIN_IO_TEST(TcpListenerTest, OutOfDescriptorsIsToldOnceForEachListener) {
  const KeptLines lines;
  DescriptorLimit limit;
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < 2; ++round) {
    // The last round's listener is closed when its carrier has let go of it.
    AwaitTrue([&] { return OpenDescriptors() == descriptors; });
    io::TcpListener listener = Listen();
    const std::string name = listener.local_address().ToString();
    auto client = io::TcpStream::Connect(listener.local_address());
    ASSERT_OK(client);
    limit.AllowNoMore();
    VirtualThread server =
        Spawn({.placement = Placement::kSpread}, [&] { EXPECT_OK(listener.Accept()); });
    AwaitTrue([&] { return listener.accept_pauses() >= 3; });
    limit.AllowAll();
    EXPECT_OK(server.Join());
    const std::vector<LogRecord> told = lines.With("accept " + name + ": out of descriptors");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].level, LogLevel::kWarning);
    EXPECT_EQ(FieldOf(told[0], "listener"), name);
  }
}

BOBBIN_IO_TEST(TcpListenerTest, OutOfDescriptorsCancelAndCloseStillEndAcceptors) {
  io::TcpListener listener = Listen();
  DescriptorLimit limit;
  auto client = io::TcpStream::Connect(listener.local_address());
  ASSERT_OK(client);
  limit.AllowNoMore();
  std::vector<VirtualThread> servers;
  for (int i = 0; i < 4; ++i) {
    servers.push_back(
        Spawn({.placement = Placement::kSpread}, [&] { return listener.Accept().status(); }));
  }
  ASSERT_OK(SleepFor(milliseconds(25)));
  servers[0].Cancel();
  EXPECT_THAT(servers[0].Join(), StatusIs(kCancelled));
  ASSERT_OK(SleepFor(milliseconds(25)));
  listener.Close();
  for (int i = 1; i < 4; ++i) {
    EXPECT_THAT(servers[static_cast<size_t>(i)].Join(), StatusIs(kAborted));
  }
  limit.AllowAll();
}

// Somebody shuts the socket down behind the listener's back.
BOBBIN_IO_TEST(TcpListenerTest, ALastingErrorReachesAllAcceptorsAndDoesNotSpin) {
  const int fd = ::dup(0);
  ::close(fd);  // The number that comes next.
  io::TcpListener listener = Listen();
  std::vector<WaitProbe> probes(3);
  TaskGroup servers({.placement = Placement::kSpread});
  for (WaitProbe& probe : probes) {
    servers.Spawn([&] {
      probe.Attach();
      EXPECT_THAT(listener.Accept(), StatusIs(kInvalidArgument));
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  ASSERT_EQ(::shutdown(fd, SHUT_RDWR), 0);
  EXPECT_OK(servers.Wait());
  EXPECT_THAT(listener.Accept(), StatusIs(kInvalidArgument));
}

// --- OS threads

BOBBIN_IO_FOREIGN_TEST(TcpListenerTest, ForeignPlatformAndVirtualAcceptorsShareAListener) {
  io::TcpListener listener = Listen();
  const int connections = Rounds(600);
  std::atomic<int> accepted{0};
  const auto serve = [&]() -> absl::Status {
    while (true) {
      auto peer = listener.Accept();
      if (absl::IsAborted(peer.status())) return absl::OkStatus();
      BOBBIN_RETURN_IF_ERROR(peer.status());
      BOBBIN_RETURN_IF_ERROR(SendNumber(*std::move(peer), ++accepted));
    }
  };
  PlatformPool pool({.name = "acceptors", .threads = 1});
  Crew servers(runtime());
  servers.Start(Kind::kVirtual, [&] { return pool.RunBlocking(serve); });
  for (int i = 0; i < 2; ++i) {
    servers.Start(Kind::kVirtual, serve);
    servers.Start(Kind::kForeign, [&] { EXPECT_OK(serve()); });
  }
  Crew clients(runtime());
  for (int i = 0; i < 6; ++i) {
    clients.Start(i % 2 == 0 ? Kind::kVirtual : Kind::kForeign, [&, i] {
      for (int k = i; k < connections; k += 6) {
        EXPECT_OK(AskForNumber(listener.local_address()));
      }
    });
  }
  clients.Join();
  listener.Close();
  servers.Join();
  EXPECT_EQ(accepted, connections);
}

BOBBIN_IO_FOREIGN_TEST(TcpListenerTest, ForeignAcceptorsObeyDeadlinesAndHandTheListenerOn) {
  io::TcpListener listener = Listen();
  for (int round = 0; round < 5; ++round) {
    WaitProbe probe;
    VirtualThread server;
    {
      OsThreads threads;
      threads.Start([&] {
        DeadlineScope scope(milliseconds(20));
        EXPECT_THAT(listener.Accept(), StatusIs(kDeadlineExceeded));
        EXPECT_THAT(listener.Accept(), StatusIs(kDeadlineExceeded));
      });
      // As a rule the foreign thread is the acceptor by now; the virtual one waits behind it.
      std::this_thread::sleep_for(milliseconds(5));
      server = runtime().Spawn([&]() -> absl::Status {
        probe.Attach();
        BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener.Accept());
        return SendNumber(std::move(peer), round);
      });
      probe.AwaitParked();
    }
    EXPECT_THAT(AskForNumber(listener.local_address()), IsOkAndHolds(round));
    EXPECT_OK(server.Join());
  }
}

TEST(TcpListenerDeathTest, AnEmptyListenerAborts) {
  io::TcpListener empty;
  EXPECT_FALSE(empty);
  EXPECT_DEATH(empty.Close(), "this TcpListener holds no socket");
}

}  // namespace
}  // namespace bobbin::test
