// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <bobbin/core/event.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/io.h>
#include <bobbin/io/management_server.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using io::FileDescriptor;
using io::ManagementOptions;
using io::ManagementServer;
using io::SocketAddress;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// A connection of a thread that blocks; what it waits for comes within seconds, or never.
FileDescriptor Unconnected() {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  return fd;
}
FileDescriptor ConnectTo(const SocketAddress& address) {
  FileDescriptor fd = Unconnected();
  EXPECT_EQ(connect(fd.get(), address.data(), address.bytes()), 0);
  return fd;
}

void Send(const FileDescriptor& fd, std::string_view text) {
  EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// All that comes until the end.
std::string ReadToEnd(const FileDescriptor& fd) {
  std::string all;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t received = recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (received <= 0) return all;
    all.append(buffer.data(), static_cast<size_t>(received));
  }
}

std::string Ask(const SocketAddress& address, std::string_view request) {
  const FileDescriptor fd = ConnectTo(address);
  Send(fd, request);
  return ReadToEnd(fd);
}
std::string Get(const ManagementServer& server, std::string_view path) {
  return Ask(server.local_address(), "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
}
std::string BodyOf(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

// A runtime that nobody is surprised to see stuck, and a server that looks into it.
struct Managed {
  explicit Managed(RuntimeOptions options = {.carriers = 1}, ManagementOptions management = {})
      : runtime(Quietly(std::move(options))) {
    auto started = ManagementServer::Start(runtime, std::move(management));
    EXPECT_OK(started);
    server = *std::move(started);
  }

  static RuntimeOptions Quietly(RuntimeOptions options) {
    options.watchdog.report = [](const CarrierHold&) {};
    return options;
  }
  std::string Get(std::string_view path) const { return test::Get(*server, path); }

  Runtime runtime;
  std::unique_ptr<ManagementServer> server;
};

TEST(ManagementServerTest, ItListensOnTheLoopbackAddressAndShowsItsPages) {
  const Managed managed;
  EXPECT_TRUE(managed.server->local_address().is_loopback());
  const std::string index = managed.Get("/");
  EXPECT_THAT(index, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(index, AllOf(HasSubstr("/health"), HasSubstr("/metrics"), HasSubstr("/dump.json")));
  EXPECT_THAT(managed.Get("/health"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("live: yes\nready: yes\n")));
  EXPECT_THAT(managed.Get("/health/live?verbose"), EndsWith("\r\n\r\nlive: yes\n"));
  EXPECT_THAT(managed.Get("/health/ready"), EndsWith("\r\n\r\nready: yes\n"));
}

TEST(ManagementServerTest, ADumpIsTextOrJson) {
  Managed managed;
  Event release;
  VirtualThread waiter =
      managed.runtime.Spawn({.name = "the-waiter"}, [&] { return release.Wait(); });
  EXPECT_THAT(managed.Get("/dump"), HasSubstr("the-waiter"));
  const std::string accepted = Ask(managed.server->local_address(),
                                   "GET /dump HTTP/1.1\r\nHost: x\r\n"
                                   "Accept: application/json\r\n\r\n");
  for (const std::string& answer : {managed.Get("/dump.json"), accepted}) {
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
    const auto json = nlohmann::json::parse(BodyOf(answer), nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    EXPECT_THAT(json.dump(), HasSubstr("the-waiter"));
  }
  release.Set();
  EXPECT_OK(waiter.Join());
}

TEST(ManagementServerTest, MetricsAreTheRuntimesOrTheProgramsOwn) {
  const Managed managed;
  EXPECT_THAT(managed.Get("/metrics"),
              AllOf(HasSubstr("Content-Type: text/plain; version=0.0.4\r\n"),
                    HasSubstr("\nbobbin_carrier_held 0\n"),
                    HasSubstr("\nbobbin_vthread_waiting_for_limit 0\n")));
  Metrics metrics;
  const auto orders = metrics.MakeCounter({.name = "shop.orders"});
  ASSERT_OK(orders);
  orders->At().Add(3);
  const Managed with({.carriers = 1}, {.metrics = &metrics});
  EXPECT_THAT(with.Get("/metrics"), HasSubstr("\nshop_orders_total 3\n"));
}

TEST(ManagementServerTest, APageThatThrowsIsAnAnswer) {
  Metrics metrics;
  const MetricsSource source =
      metrics.AddSource([](MetricsSnapshot&) { throw std::runtime_error("no numbers today"); });
  const Managed managed({.carriers = 1}, {.metrics = &metrics});
  EXPECT_THAT(managed.Get("/metrics"),
              AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("no numbers today")));
  EXPECT_THAT(managed.Get("/health"), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, AnswersWhileNothingElseDoes) {
  Managed managed(
      {.carriers = 2,
       .virtual_threads_max = 3,
       .executors = {.named = {{"reports",
                                {.kind = ThreadKind::kPlatform, .threads = 1, .queue_max = 1}}}}},
      {.stuck_after = milliseconds(50), .dump_budget = milliseconds(200)});
  Runtime& runtime = managed.runtime;
  std::atomic<bool> may_end{false};
  std::atomic<int> stuck{0};
  const auto wait = [&] {
    ++stuck;
    while (!may_end.load()) usleep(1000);
  };

  // The executor has one thread and one place in its queue; its task does not end.
  auto executor = runtime.executors().Find("reports");
  ASSERT_OK(executor);
  ASSERT_OK((*executor)->Submit(wait));
  AwaitTrue([&] { return stuck.load() == 1; });
  ASSERT_OK((*executor)->Submit([] {}));
  EXPECT_FALSE((*executor)->Submit([] {}).ok());

  // Both carriers are hogged, by one that computes and one that blocks; a third thread is the last
  // one that may live, and a spawner waits.
  VirtualThread computes =
      runtime.Spawn({.name = "computes", .placement = Placement::kSpread}, [&] {
        ++stuck;
        while (!may_end.load()) {
        }
      });
  VirtualThread blocks =
      runtime.Spawn({.name = "blocks", .placement = Placement::kSpread}, [&] { wait(); });
  AwaitTrue([&] { return stuck.load() == 3; });
  VirtualThread queued = runtime.Spawn({.name = "queued"}, [] {});
  std::thread spawner([&] { runtime.Spawn([] {}).Detach(); });
  AwaitTrue([&] { return runtime.Statistics().waiting_for_limit == 1; });
  AwaitTrue([&] {
    const auto held = runtime.HeldCarriers();
    return held.size() == 2 && std::min(held[0].held, held[1].held) > milliseconds(50);
  });

  EXPECT_THAT(managed.Get("/"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(managed.Get("/health"),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("live: no, carrier 0 of 2 is stuck for"),
                    HasSubstr("live: no, carrier 1 of 2 is stuck for"),
                    HasSubstr("ready: no, 1 spawners wait at the limit")));
  EXPECT_THAT(managed.Get("/metrics"), AllOf(HasSubstr("\nbobbin_carrier_held 2\n"),
                                             HasSubstr("\nbobbin_vthread_waiting_for_limit 1\n")));
  for (const std::string_view page : {"/dump", "/dump.json"}) {
    EXPECT_THAT(managed.Get(page), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("computes"),
                                         HasSubstr("blocks"), HasSubstr("queued")));
  }

  may_end.store(true);
  spawner.join();
  EXPECT_OK(computes.Join());
  EXPECT_OK(blocks.Join());
  EXPECT_OK(queued.Join());
  AwaitTrue([&] { return runtime.HeldCarriers().empty(); });
  EXPECT_THAT(managed.Get("/health"), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, AnswersWhenThereAreNoDescriptorsLeft) {
  const Managed managed;
  const FileDescriptor client = Unconnected();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<FileDescriptor> taken;
  do {
    taken.emplace_back(dup(client.get()));
  } while (taken.back().is_open());

  const SocketAddress& address = managed.server->local_address();
  EXPECT_EQ(connect(client.get(), address.data(), address.bytes()), 0);
  Send(client, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  std::array<char, 12> begin{};
  EXPECT_EQ(recv(client.get(), begin.data(), begin.size(), MSG_WAITALL), 12);
  EXPECT_EQ(std::string_view(begin.data(), begin.size()), "HTTP/1.1 200");
  taken.clear();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ManagementServerTest, OnlyGetAndHeadAreAnswered) {
  const Managed managed;
  const SocketAddress& address = managed.server->local_address();
  EXPECT_THAT(Ask(address, "HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 21\r\n"),
                    EndsWith("\r\n\r\n")));
  EXPECT_THAT(Ask(address, "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
  EXPECT_THAT(managed.Get("/nothing"), StartsWith("HTTP/1.1 404 "));
}

TEST(ManagementServerTest, BadRequestsAreToldAndHarmNobody) {
  const Managed managed({.carriers = 1}, {.header_bytes_max = 1000});
  const SocketAddress& address = managed.server->local_address();
  EXPECT_THAT(Ask(address, "hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(address, "GET / HTTP/1.1\nHost: x\n\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(address, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 505 "));
  const std::string long_field = "X: " + std::string(2000, 'x');
  EXPECT_THAT(Ask(address, "GET / HTTP/1.1\r\nHost: x\r\n" + long_field + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(address, "GET / HTTP/1.1\r\nHost: x\r\n" + long_field),
              StartsWith("HTTP/1.1 431 "));
  ConnectTo(address);  // And goes without a word.
  EXPECT_THAT(managed.Get("/health"), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, ARequestMayComeByteByByte) {
  const Managed managed;
  const FileDescriptor slow = ConnectTo(managed.server->local_address());
  for (const char& next : std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) {
    Send(slow, std::string_view(&next, 1));
  }
  EXPECT_THAT(ReadToEnd(slow), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, SlowClientsAreCutOffAndHoldUpNobody) {
  const Managed managed({.carriers = 1}, {.request_budget = milliseconds(1000)});
  const SocketAddress& address = managed.server->local_address();
  const FileDescriptor silent = ConnectTo(address);
  const FileDescriptor slow = ConnectTo(address);
  Send(slow, "GET / HTTP/1.1\r\nX");
  EXPECT_THAT(managed.Get("/health"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ReadToEnd(slow), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(ReadToEnd(silent), IsEmpty());
}

TEST(ManagementServerTest, WhoeverAlwaysSendsALittleMoreIsCutOff) {
  const Managed managed({.carriers = 1}, {.request_budget = milliseconds(1000)});
  const FileDescriptor slow = ConnectTo(managed.server->local_address());
  Send(slow, "GET / HTTP/1.1\r\nX: ");
  while (send(slow.get(), "x", 1, MSG_NOSIGNAL) == 1) usleep(1000);
  EXPECT_THAT(managed.Get("/health"), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, TooManyClientsAreTold) {
  const Managed managed({.carriers = 1}, {.connections_max = 2});
  const SocketAddress& address = managed.server->local_address();
  const FileDescriptor one = ConnectTo(address);
  const FileDescriptor two = ConnectTo(address);
  EXPECT_THAT(managed.Get("/health"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("there are too many clients\n")));
  Send(one, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadToEnd(one), StartsWith("HTTP/1.1 200 "));
}

TEST(ManagementServerTest, ManyClientsAtOnceAreAllAnswered) {
  const Managed managed({.carriers = 1}, {.connections_max = 100});
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(ConnectTo(managed.server->local_address()));
  for (const FileDescriptor& client : clients) {
    Send(client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (const FileDescriptor& client : clients) {
    EXPECT_THAT(ReadToEnd(client), StartsWith("HTTP/1.1 200 "));
  }
}

TEST(ManagementServerTest, WhyItCannotStartIsToldClearly) {
  Managed managed;
  const std::string taken = managed.server->local_address().ToString();
  const absl::Status second = ManagementServer::Start(managed.runtime, {.listen = taken}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.message(), AllOf(HasSubstr("management: " + taken), HasSubstr("in use")));
  EXPECT_EQ(ManagementServer::Start(managed.runtime, {.listen = "nowhere"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ManagementServer::Start(managed.runtime, {.connections_max = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ManagementServerTest, StopIsPromptAndCutsClientsOff) {
  const Managed managed;
  const SocketAddress address = managed.server->local_address();
  const FileDescriptor waits = ConnectTo(address);
  Send(waits, "GET /");
  const auto begin = std::chrono::steady_clock::now();
  managed.server->Stop();
  managed.server->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(2));
  EXPECT_THAT(ReadToEnd(waits), Not(StartsWith("HTTP/1.1 200")));
  const FileDescriptor late = Unconnected();
  EXPECT_NE(connect(late.get(), address.data(), address.bytes()), 0);
}

TEST(ManagementServerTest, ItAnswersUntilTheLastPhaseOfTheStop) {
  std::string ready;
  std::string live;
  SocketAddress address;
  {
    Managed managed;
    Runtime& runtime = managed.runtime;
    address = managed.server->local_address();
    ManagementServer::StopLast(std::move(managed.server));
    // Registered later, so called earlier.
    runtime.lifecycle()
        .OnStop({.phase = StopPhase::kResources, .name = "asks"},
                [&] {
                  ready = Ask(address, "GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n");
                  live = Ask(address, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
                  return absl::OkStatus();
                })
        .Detach();
    runtime.lifecycle().RequestStop();
    EXPECT_OK(runtime.Shutdown());
  }
  EXPECT_THAT(ready,
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("ready: no, the runtime stops\n")));
  EXPECT_THAT(live, StartsWith("HTTP/1.1 200 "));
  const FileDescriptor late = Unconnected();
  EXPECT_NE(connect(late.get(), address.data(), address.bytes()), 0);
}

}  // namespace
}  // namespace bobbin::test
