// SPDX-License-Identifier: Apache-2.0
//
// BOBBIN_IO_TEST(Suite, Case): as BOBBIN_TEST, in a runtime whose carriers do I/O; once for each
// way to do it, a ring and an epoll. BOBBIN_IO_FOREIGN_TEST(Suite, Case): the body runs on a
// foreign thread, next to such a runtime. BOBBIN_RING_TEST(Suite, Case, options): as the first,
// with rings only, which have these UringOptions. BOBBIN_EPOLL_TEST(Suite, Case): as the first,
// with epoll only.
//
// Where the environment says BOBBIN_TEST_IO=refused, the first two run once, with AutoPoller, which
// must choose epoll and say why.
//
//   Called from   namespace scope.
//
// Example:
//   BOBBIN_IO_TEST(TcpStreamTest, ReadReturnsWhatWasWritten) {
//     Pair pair = MakePair();
//     ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
//     EXPECT_EQ(ReadText(pair.right, 4), "ping");
//   }

#ifndef BOBBIN_TESTS_IO_IO_TEST_H_
#define BOBBIN_TESTS_IO_IO_TEST_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/io/io.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {

inline constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
inline constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;
inline constexpr absl::StatusCode kPermissionDenied = absl::StatusCode::kPermissionDenied;
inline constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;

enum class Backend { kRing, kEpoll, kRefusedRing };

inline PollerFactory MakePollers(Backend backend, const io::UringOptions& options = {}) {
  switch (backend) {
    case Backend::kRing:
      return io::UringPoller(options);
    case Backend::kEpoll:
      return io::EpollPoller();
    case Backend::kRefusedRing:
      return io::AutoPoller(options);
  }
  return {};
}

inline std::string_view BackendName(Backend backend) {
  switch (backend) {
    case Backend::kRing:
      return "uring";
    case Backend::kEpoll:
      return "epoll";
    case Backend::kRefusedRing:
      return "refused";
  }
  return "?";
}

// Those that the tests of this process run on.
inline std::vector<Backend> Backends() {
  const char* const wish = std::getenv("BOBBIN_TEST_IO");
  if (wish != nullptr && std::string_view(wish) == "refused") return {Backend::kRefusedRing};
  return {Backend::kRing, Backend::kEpoll};
}

// The names of this process's OS threads.
inline std::vector<std::string> OsThreadNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    names.push_back(name);
  }
  return names;
}

// The kernel starts a thread of its own for what a ring asks of it and it cannot wait for
// otherwise: there is nothing of that kind here.
inline void ExpectNoKernelThreads() {
  for (const std::string& name : OsThreadNames()) {
    EXPECT_FALSE(name.starts_with("iou-wrk")) << name;
  }
}

class IoTest : public testing::Test {
 public:
  explicit IoTest(bool is_foreign, io::UringOptions options = {})
      : is_foreign_(is_foreign), options_(options) {}
  void set_carriers(int carriers) { carriers_ = carriers; }
  void set_backend(Backend backend) { backend_ = backend; }

 protected:
  Runtime& runtime() { return *runtime_; }
  int carriers() const { return carriers_; }
  Backend backend() const { return backend_; }
  Random& random() { return random_; }

 private:
  void TestBody() final {
    random_ = Random(Seed() + static_cast<uint64_t>(carriers_));
    WithRuntime({.carriers = carriers_, .poller = MakePollers(backend_, options_)},
                [this](Runtime& runtime) {
                  runtime_ = &runtime;
                  if (backend_ == Backend::kRefusedRing) {
                    EXPECT_EQ(runtime.poller_name(), "epoll");
                    EXPECT_TRUE(runtime.poller_reason().starts_with("io_uring: "));
                  }
                  if (is_foreign_) {
                    Body();
                  } else {
                    EXPECT_OK(runtime.Spawn({.name = "test"}, [this] { Body(); }).Join());
                  }
                  ExpectNoKernelThreads();
                });
  }
  virtual void Body() = 0;

  const bool is_foreign_;
  const io::UringOptions options_;
  int carriers_ = 1;
  Backend backend_ = Backend::kRing;
  Random random_{0};
  Runtime* runtime_ = nullptr;
};

template <typename Test>
bool RegisterIoTest(const char* suite, const char* name, const char* file, int line,
                    const std::vector<Backend>& backends) {
  for (const Backend backend : backends) {
    for (const int carriers : {1, 2, 4}) {
      const std::string variant =
          std::string(BackendName(backend)) + "_" + std::to_string(carriers);
      testing::RegisterTest(suite, (std::string(name) + "/" + variant).c_str(), nullptr,
                            variant.c_str(), file, line, [backend, carriers]() -> testing::Test* {
                              auto* const test = new Test;
                              test->set_backend(backend);
                              test->set_carriers(carriers);
                              return test;
                            });
    }
  }
  return true;
}

// Two ends of a connection.
struct Pair {
  io::TcpStream left;
  io::TcpStream right;
};

// Over TCP; from any thread that may wait.
inline Pair MakePair() {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  EXPECT_OK(listener);
  auto left = io::TcpStream::Connect(listener->local_address());
  EXPECT_OK(left);
  auto right = listener->Accept();
  EXPECT_OK(right);
  return {*std::move(left), *std::move(right)};
}

// Within the kernel, whose buffers hold about `buffer_bytes` each way; 0: the system's default.
inline Pair MakeLocalPair(int buffer_bytes = 0) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  for (const int fd : fds) {
    if (buffer_bytes == 0) continue;
    EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes)), 0);
    EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes)), 0);
  }
  return {io::TcpStream::Adopt(fds[0]), io::TcpStream::Adopt(fds[1])};
}

inline std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What comes next; shorter than `bytes` if the peer ended before.
template <typename Stream>
std::string ReadText(Stream& stream, size_t bytes) {
  std::string text(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    auto received = stream.Read(std::as_writable_bytes(std::span(text)).subspan(have));
    EXPECT_OK(received);
    if (!received.ok() || *received == 0) break;
    have += *received;
  }
  text.resize(have);
  return text;
}

// Byte `index` of a stream that repeats itself only after a prime number of bytes.
inline std::byte PatternAt(size_t index) { return static_cast<std::byte>(index % 251); }

// Lets a test wait until a thread waits for the kernel, or at a primitive.
class WaitProbe {
 public:
  void Attach() { thread_.store(&internal::Current()); }
  bool IsParked() const {
    const internal::Thread* const thread = thread_.load();
    if (thread == nullptr) return false;
    const internal::Phase phase = thread->state().phase();
    return phase == internal::Phase::kWaiting || phase == internal::Phase::kWaitingAny ||
           phase == internal::Phase::kWaitingShielded || phase == internal::Phase::kWaitingKernel;
  }
  void AwaitParked() const {
    AwaitTrue([this] { return IsParked(); });
  }

 private:
  // Written by the watched thread, read by others.
  std::atomic<internal::Thread*> thread_{nullptr};
};

}  // namespace bobbin::test

#define BOBBIN_IO_TEST_CASE(suite, name, backends, ...)                                          \
  class suite##_##name##_IoTest final : public ::bobbin::test::IoTest {                          \
   public:                                                                                       \
    suite##_##name##_IoTest() : IoTest(__VA_ARGS__) {}                                           \
                                                                                                 \
   private:                                                                                      \
    void Body() override;                                                                        \
  };                                                                                             \
  [[maybe_unused]] static const bool suite##_##name##_is_registered =                            \
      ::bobbin::test::RegisterIoTest<suite##_##name##_IoTest>(#suite, #name, __FILE__, __LINE__, \
                                                              backends);                         \
  void suite##_##name##_IoTest::Body()

#define BOBBIN_IO_TEST(suite, name) \
  BOBBIN_IO_TEST_CASE(suite, name, ::bobbin::test::Backends(), false)
#define BOBBIN_IO_FOREIGN_TEST(suite, name) \
  BOBBIN_IO_TEST_CASE(suite, name, ::bobbin::test::Backends(), true)
#define BOBBIN_RING_TEST(suite, name, ...)                                  \
  BOBBIN_IO_TEST_CASE(suite, name, {::bobbin::test::Backend::kRing}, false, \
                      ::bobbin::io::UringOptions __VA_ARGS__)
#define BOBBIN_EPOLL_TEST(suite, name) \
  BOBBIN_IO_TEST_CASE(suite, name, {::bobbin::test::Backend::kEpoll}, false)

#endif  // BOBBIN_TESTS_IO_IO_TEST_H_
