// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/unix.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"
#include "tests/support/leak_check.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

// One that nobody else has.
std::string AbstractName() {
  static std::atomic<int> number{0};
  return "@bobbin-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

struct UnixPair {
  io::UnixStream left;
  io::UnixStream right;
};

UnixPair MakeUnixPair() {
  auto pair = io::UnixStream::Pair();
  EXPECT_OK(pair);
  return {std::move(pair->first), std::move(pair->second)};
}

std::string ReadAll(io::UnixStream& stream, size_t bytes) {
  std::string text(bytes, '\0');
  EXPECT_OK(stream.ReadExact(std::as_writable_bytes(std::span(text))));
  return text;
}

// --- Names

BOBBIN_IO_TEST(UnixListenerTest, PathsAndAbstractNamesBringConnections) {
  const TemporaryDirectory directory;
  for (const std::string& name : {directory.path() + "/socket", AbstractName()}) {
    auto listener = io::UnixListener::Bind(name);
    ASSERT_OK(listener);
    EXPECT_EQ(listener->name(), name);
    auto client = io::UnixStream::Connect(name);
    ASSERT_OK(client);
    auto server = listener->Accept();
    ASSERT_OK(server);
    ASSERT_OK(client->WriteAll(Bytes("ping")));
    EXPECT_EQ(ReadAll(*server, 4), "ping");
    ASSERT_OK(server->WriteAll(Bytes("pong!")));
    EXPECT_EQ(ReadAll(*client, 5), "pong!");
    ASSERT_OK(client->ShutdownWrite());
    std::array<std::byte, 8> buffer;
    EXPECT_THAT(server->Read(buffer), IsOkAndHolds(0u));
  }
}

BOBBIN_IO_TEST(UnixListenerTest, WrongNamesAreRefusedAndTheMessageSaysWhy) {
  const auto message = [](std::string_view name) {
    return std::string(MessageOf(io::UnixListener::Bind(name).status()));
  };
  EXPECT_EQ(message(""), "socket name : empty");
  EXPECT_EQ(message("@"), "socket name @: empty");
  EXPECT_TRUE(message(std::string(108, 'p')).ends_with("longer than 107 bytes"));
  EXPECT_TRUE(message("@" + std::string(108, 'p')).ends_with("longer than 108 bytes"));
  EXPECT_TRUE(message(std::string("a\0b", 3)).ends_with("a path has no zero byte"));
  EXPECT_THAT(io::UnixStream::Connect(""), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(UnixListenerTest, NamesOfNobodyAreToldApart) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  const auto nobody = io::UnixStream::Connect(path);
  EXPECT_THAT(nobody, StatusIs(kNotFound));
  EXPECT_TRUE(MessageOf(nobody.status()).starts_with("connect " + path));
  EXPECT_THAT(io::UnixStream::Connect(AbstractName()), StatusIs(kUnavailable));
  // A socket whose listener has died.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  EXPECT_THAT(io::UnixStream::Connect(path), StatusIs(kUnavailable));
  EXPECT_THAT(io::UnixListener::Bind(path), StatusIs(kFailedPrecondition));
  auto listener = io::UnixListener::Bind(path, {.taken_path = io::TakenPath::kReplacedIfStale});
  ASSERT_OK(listener);
  // Now somebody listens.
  EXPECT_FALSE(io::UnixListener::Bind(path, {.taken_path = io::TakenPath::kReplacedIfStale}).ok());
  EXPECT_OK(io::UnixStream::Connect(path));
}

BOBBIN_IO_TEST(UnixListenerTest, AFileIsNeverReplacedByASocket) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_FALSE(io::UnixListener::Bind(path, {.taken_path = io::TakenPath::kReplacedIfStale}).ok());
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_TRUE(S_ISREG(found.st_mode));
}

BOBBIN_IO_TEST(UnixListenerTest, ThePathHasItsPermissionsAndGoesWithItsListener) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  struct stat found {};
  auto listener = io::UnixListener::Bind(path, {.permissions = 0600});
  ASSERT_OK(listener);
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0600u);
  listener->Close();
  EXPECT_NE(::stat(path.c_str(), &found), 0);
  // Not if it is another one's by then.
  auto second = io::UnixListener::Bind(path);
  ASSERT_OK(second);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  auto third = io::UnixListener::Bind(path);
  ASSERT_OK(third);
  second->Close();
  EXPECT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_OK(io::UnixStream::Connect(path));
}

// --- Listeners

BOBBIN_IO_TEST(UnixListenerTest, CloseEndsAcceptorsOnAllCarriers) {
  for (int round = 0; round < Rounds(50); ++round) {
    auto listener = io::UnixListener::Bind(AbstractName());
    ASSERT_OK(listener);
    std::array<WaitProbe, 3> probes;
    TaskGroup group({.placement = Placement::kSpread});
    for (WaitProbe& probe : probes) {
      group.Spawn([&] {
        probe.Attach();
        EXPECT_THAT(listener->Accept(), StatusIs(kAborted));
      });
    }
    if (random().OneIn(2)) {
      for (const WaitProbe& probe : probes) probe.AwaitParked();
    }
    // From another carrier than that which accepts, mostly.
    VirtualThread closer = Spawn({.placement = Placement::kSpread}, [&] { listener->Close(); });
    EXPECT_OK(closer.Join());
    EXPECT_OK(group.Wait());
    EXPECT_THAT(listener->Accept(), StatusIs(kAborted));
  }
}

BOBBIN_IO_FOREIGN_TEST(UnixListenerTest, CloseEndsForeignAcceptors) {
  for (int round = 0; round < Rounds(20); ++round) {
    auto listener = io::UnixListener::Bind(AbstractName());
    ASSERT_OK(listener);
    std::atomic<int> begun{0};
    OsThreads threads;
    for (int i = 0; i < 2; ++i) {
      threads.Start([&] {
        ++begun;
        EXPECT_THAT(listener->Accept(), StatusIs(kAborted));
      });
    }
    AwaitTrue([&] { return begun == 2; });
    if (random().OneIn(2)) SleepFor(microseconds(300)).IgnoreError();
    if (random().OneIn(2)) {
      listener->Close();
    } else {
      EXPECT_OK(runtime().Spawn([&] { listener->Close(); }).Join());
    }
  }
}

// A listener that is closed while connections come, and its operation is started and ends.
BOBBIN_IO_TEST(UnixListenerTest, CloseRacesWithAcceptorsAndClients) {
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < Rounds(100); ++round) {
    const std::string name = AbstractName();
    auto listener = io::UnixListener::Bind(name);
    ASSERT_OK(listener);
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 2; ++i) {
      group.Spawn([&] {
        while (listener->Accept().ok()) {
        }
      });
      group.Spawn([&] {
        while (io::UnixStream::Connect(name).ok()) Yield();
      });
    }
    group.Spawn([&, spins = random().Below(20)] {
      for (uint64_t i = 0; i < spins; ++i) Yield();
      listener->Close();
    });
    EXPECT_OK(group.Wait());
  }
  // The last carrier lets go a moment later.
  AwaitTrue([&] { return OpenDescriptors() == descriptors; });
}

BOBBIN_IO_TEST(UnixListenerTest, AFullQueueMakesConnectsWaitUntilTheirDeadline) {
  const std::string name = AbstractName();
  auto listener = io::UnixListener::Bind(name, {.backlog = 0});
  ASSERT_OK(listener);
  std::vector<io::UnixStream> queued;
  while (true) {
    DeadlineScope scope(milliseconds(20));
    auto stream = io::UnixStream::Connect(name);
    if (!stream.ok()) {
      EXPECT_THAT(stream, StatusIs(kDeadlineExceeded));
      break;
    }
    queued.push_back(*std::move(stream));
    ASSERT_LT(queued.size(), 16u);
  }
  WaitProbe probe;
  VirtualThread client = Spawn({.placement = Placement::kSpread}, [&] {
    probe.Attach();
    return io::UnixStream::Connect(name).status();
  });
  probe.AwaitParked();
  ExpectNoKernelThreads();
  for (size_t i = 0; i <= queued.size(); ++i) EXPECT_OK(listener->Accept());
  EXPECT_OK(client.Join());
}

// --- Descriptors

// The two ends of a pipe.
struct Fds {
  Fds() { EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0); }
  Fds(const Fds&) = delete;
  Fds& operator=(const Fds&) = delete;
  ~Fds() { CloseBoth(); }
  void CloseBoth() {
    for (int& fd : fds) {
      if (fd >= 0) ::close(std::exchange(fd, -1));
    }
  }
  std::array<int, 2> fds{};
};

BOBBIN_IO_TEST(UnixStreamTest, DescriptorsComeWithTheBytesTheyWereSentWith) {
  UnixPair pair = MakeUnixPair();
  WaitProbe probe;
  VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
    probe.Attach();
    std::array<std::byte, 64> buffer;
    auto first = pair.right.ReadWithDescriptors(buffer);
    ASSERT_OK(first);
    EXPECT_EQ(first->bytes, 5u);
    EXPECT_FALSE(first->has_lost_descriptors);
    ASSERT_EQ(first->descriptors.size(), 2u);
    EXPECT_NE(::fcntl(first->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    // They are the pipe.
    EXPECT_EQ(::write(first->descriptors[1].get(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(first->descriptors[0].get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(ReadAll(pair.right, 4), "none");
  });
  if (random().OneIn(2)) probe.AwaitParked();
  Fds pipe;
  ASSERT_OK(pair.left.WriteAllWithDescriptors(Bytes("bytes"), pipe.fds));
  pipe.CloseBoth();
  ASSERT_OK(pair.left.WriteAll(Bytes("none")));
  EXPECT_OK(reader.Join());
}

BOBBIN_IO_TEST(UnixStreamTest, DescriptorsGoOnceWithALongWrite) {
  UnixPair pair = MakeUnixPair();
  const std::string text(size_t{4} << 20, 't');
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    Fds pipe;
    return pair.left.WriteAllWithDescriptors(Bytes(text), pipe.fds);
  });
  size_t have = 0;
  size_t descriptors = 0;
  std::vector<std::byte> buffer(100'000);
  while (have < text.size()) {
    auto read = pair.right.ReadWithDescriptors(buffer);
    ASSERT_OK(read);
    ASSERT_GT(read->bytes, 0u);
    have += read->bytes;
    descriptors += read->descriptors.size();
  }
  EXPECT_EQ(descriptors, 2u);
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(UnixStreamTest, AsManyDescriptorsAsTheKernelTakesAndNotOneMore) {
  UnixPair pair = MakeUnixPair();
  Fds pipe;
  std::vector<int> many(io::UnixStream::kDescriptorsMax, pipe.fds[0]);
  ASSERT_OK(pair.left.WriteAllWithDescriptors(Bytes("m"), many));
  std::array<std::byte, 8> buffer;
  auto read = pair.right.ReadWithDescriptors(buffer);
  ASSERT_OK(read);
  EXPECT_EQ(read->descriptors.size(), many.size());
  EXPECT_FALSE(read->has_lost_descriptors);
  many.push_back(pipe.fds[0]);
  EXPECT_THAT(pair.left.WriteAllWithDescriptors(Bytes("m"), many), StatusIs(kInvalidArgument));
  EXPECT_FALSE(pair.left.WriteAllWithDescriptors(Bytes("m"), std::array{-1}).ok());
}

BOBBIN_IO_TEST(UnixStreamTest, DescriptorsThatNobodyTakesAreClosed) {
  const size_t before = OpenDescriptors();
  {
    UnixPair pair = MakeUnixPair();
    const size_t with_pair = OpenDescriptors();
    for (int round = 0; round < Rounds(20); ++round) {
      Fds pipe;
      ASSERT_OK(pair.left.WriteAllWithDescriptors(Bytes("abc"), pipe.fds));
      pipe.CloseBoth();
      if (round % 2 == 0) {
        EXPECT_EQ(ReadAll(pair.right, 3), "abc");
      } else {
        std::array<std::byte, 8> buffer;
        EXPECT_OK(pair.right.ReadWithDescriptors(buffer));  // Which goes at once.
      }
      EXPECT_EQ(OpenDescriptors(), with_pair);
    }
    // And those that are still on their way.
    const Fds pipe;
    ASSERT_OK(pair.left.WriteAllWithDescriptors(Bytes("abc"), pipe.fds));
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

BOBBIN_IO_TEST(UnixStreamTest, DescriptorsForWhichThereIsNoRoomAreTold) {
  UnixPair pair = MakeUnixPair();
  Fds pipe;
  const std::vector<int> many(20, pipe.fds[0]);
  ASSERT_OK(pair.left.WriteAllWithDescriptors(Bytes("m"), many));
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const int next = ::dup(pipe.fds[0]);
  const rlimit tight{.rlim_cur = static_cast<rlim_t>(next) + 5, .rlim_max = old.rlim_max};
  ::close(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::array<std::byte, 8> buffer;
  auto read = pair.right.ReadWithDescriptors(buffer);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_OK(read);
  EXPECT_EQ(read->bytes, 1u);
  EXPECT_LT(read->descriptors.size(), many.size());
  EXPECT_TRUE(read->has_lost_descriptors);
}

// What a read was given when its deadline came must be returned, or still be there.
BOBBIN_IO_TEST(UnixStreamTest, DeadlinesLoseNoDescriptor) {
  const size_t before = OpenDescriptors();
  {
    UnixPair pair = MakeUnixPair();
    const int total = Rounds(500);
    VirtualThread writer =
        Spawn({.placement = Placement::kSpread}, [&, jitter = random().Fork()]() mutable {
          const Fds pipe;
          for (int i = 0; i < total; ++i) {
            EXPECT_OK(pair.left.WriteAllWithDescriptors(Bytes("d"), std::array{pipe.fds[0]}));
            if (jitter.OneIn(2)) SleepFor(microseconds(jitter.Below(300))).IgnoreError();
          }
        });
    int have = 0;
    int expired = 0;
    while (have < total) {
      DeadlineScope scope(microseconds(random().Between(0, 300)));
      std::array<std::byte, 4> buffer;
      auto read = pair.right.ReadWithDescriptors(buffer);
      if (absl::IsDeadlineExceeded(read.status())) {
        ++expired;
        continue;
      }
      ASSERT_OK(read);
      ASSERT_EQ(read->bytes, read->descriptors.size());
      have += static_cast<int>(read->bytes);
    }
    EXPECT_OK(writer.Join());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

BOBBIN_IO_FOREIGN_TEST(UnixStreamTest, ForeignThreadsPassDescriptors) {
  UnixPair pair = MakeUnixPair();
  Fds pipe;
  OsThreads threads;
  threads.Start([&] {
    EXPECT_OK(pair.left.WriteAllWithDescriptors(Bytes("bytes"), pipe.fds));
    pair.left.Close();
  });
  std::array<std::byte, 16> buffer;
  auto read = pair.right.ReadWithDescriptors(buffer);
  ASSERT_OK(read);
  EXPECT_EQ(read->descriptors.size(), 2u);
  read = pair.right.ReadWithDescriptors(buffer);
  ASSERT_OK(read);
  EXPECT_EQ(read->bytes, 0u);
}

// --- The rest of a stream

BOBBIN_IO_TEST(UnixStreamTest, ThePeerIsKnownByItsProcessAndUser) {
  UnixPair pair = MakeUnixPair();
  const auto who = pair.left.PeerCredentials();
  ASSERT_OK(who);
  EXPECT_EQ(who->process, ::getpid());
  EXPECT_EQ(who->user, ::getuid());
  EXPECT_EQ(who->group, ::getgid());
}

BOBBIN_IO_TEST(UnixStreamTest, PartsMoveAndTheOneReaderIsEnforced) {
  UnixPair pair = MakeUnixPair();
  const std::array<std::span<const std::byte>, 3> parts = {Bytes("a"), Bytes(""), Bytes("bc")};
  ASSERT_OK(pair.left.WriteAll(parts));
  EXPECT_THAT(pair.left.Write(parts), IsOkAndHolds(3u));
  EXPECT_EQ(pair.left.WriteCounted(parts).bytes, 3u);
  EXPECT_EQ(ReadAll(pair.right, 9), "abcabcabc");
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    std::array<std::byte, 4> buffer;
    EXPECT_THAT(pair.right.ReadWithDescriptors(buffer), StatusIs(kAborted));
  });
  probe.AwaitParked();
  std::array<std::byte, 4> buffer;
  EXPECT_THAT(pair.right.ReadWithDescriptors(buffer), StatusIs(kFailedPrecondition));
  EXPECT_THAT(pair.right.Read(buffer), StatusIs(kFailedPrecondition));
  pair.right.Close();
  EXPECT_OK(reader.Join());
}

// Nobody is about to begin a call, but somebody is in one.
BOBBIN_IO_TEST(UnixStreamTest, AHandleThatGoesEndsItsReader) {
  for (const bool takes_descriptors : {false, true}) {
    UnixPair pair = MakeUnixPair();
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 4> buffer;
      const absl::Status status = takes_descriptors
                                      ? pair.right.ReadWithDescriptors(buffer).status()
                                      : pair.right.Read(buffer).status();
      EXPECT_THAT(status, StatusIs(kAborted));
    });
    probe.AwaitParked();
    pair.right = io::UnixStream();
    EXPECT_OK(reader.Join());
  }
}

BOBBIN_IO_TEST(UnixStreamTest, CallsAfterCloseAreAborted) {
  UnixPair pair = MakeUnixPair();
  pair.left.Close();
  std::array<std::byte, 4> buffer{};
  EXPECT_THAT(pair.left.Read(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.ReadWithDescriptors(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.WriteAllWithDescriptors(buffer, {}), StatusIs(kAborted));
  EXPECT_THAT(pair.left.WriteAll(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.ShutdownWrite(), StatusIs(kAborted));
  EXPECT_THAT(pair.left.PeerCredentials(), StatusIs(kAborted));
  EXPECT_THAT(pair.right.Read(buffer), IsOkAndHolds(0u));
}

BOBBIN_IO_TEST(UnixStreamTest, WritingToAPeerThatIsGoneIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  UnixPair pair = MakeUnixPair();
  pair.right.Close();
  EXPECT_THAT(pair.left.WriteAll(Bytes("anybody there?")), StatusIs(kUnavailable));
  const Fds pipe;
  EXPECT_THAT(pair.left.WriteAllWithDescriptors(Bytes("anybody?"), pipe.fds),
              StatusIs(kUnavailable));
}

TEST(UnixStreamDeathTest, EmptyOnesAbort) {
  io::UnixStream stream;
  EXPECT_DEATH(stream.Close(), "this stream holds no connection");
  io::UnixListener listener;
  EXPECT_DEATH(listener.Close(), "this UnixListener holds no socket");
}

}  // namespace
}  // namespace bobbin::test
