// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/process.h>
#include <bobbin/io/server.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"
#include "tests/io/tls_test.h"
#include "tests/support/kept_lines.h"

namespace bobbin::test {
namespace {

using io::http::BodyWriter;
using io::http::Client;
using io::http::ClientRequest;
using io::http::Request;
using io::http::Response;
using io::http::Server;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<Response> Mirror(Request& request) {
  BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
  const std::string secret(request.Find("Authorization").value_or(""));
  return Response{.body = std::string(request.method()) + " " + std::string(request.target()) +
                          " [" + body + "]" + secret};
}

std::string Url(const io::SocketAddress& address, std::string_view target = "/") {
  return "https://localhost:" + std::to_string(address.port()) + std::string(target);
}

// The whole body of what comes back.
absl::StatusOr<std::string> Fetch(Client& client, ClientRequest request) {
  BOBBIN_ASSIGN_OR_RETURN(auto response, client.Send(std::move(request)));
  return response.ReadAll();
}

// --- Server and client

BOBBIN_IO_TEST(HttpsTest, RequestsAndBodiesGoOverOneConnection) {
  const io::TlsServerContext tls = ServerContext();
  Server server({.tls = tls}, ListenHere(), Mirror);
  Client client({.tls = ClientContext()});
  const std::string url = Url(server.local_address(), "/a");
  EXPECT_THAT(Fetch(client, {.url = url}), IsOkAndHolds(std::string("GET /a []")));
  const std::string large(300'000, 'x');
  EXPECT_THAT(Fetch(client, {.method = "POST", .url = url, .body = large}),
              IsOkAndHolds("POST /a [" + large + "]"));
  const auto stream = [](BodyWriter& body) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(body.Write("in "));
    BOBBIN_RETURN_IF_ERROR(body.Flush());
    return body.Write("pieces");
  };
  EXPECT_THAT(Fetch(client, {.method = "PUT", .url = url, .stream = stream}),
              IsOkAndHolds(std::string("PUT /a [in pieces]")));
  EXPECT_EQ(client.Statistics().connected, 1U);
  EXPECT_EQ(client.Statistics().reused, 2U);
  EXPECT_EQ(tls.Statistics().handshakes, 1U);
}

BOBBIN_IO_TEST(HttpsTest, AConnectionGoesOnAfterARest) {
  const io::TlsServerContext tls = ServerContext();
  Server server({.tls = tls}, ListenHere(), Mirror);
  Client client({.tls = ClientContext()});
  const std::string url = Url(server.local_address(), "/" + std::string(7000, 'a'));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Fetch(client, {.method = "POST", .url = url, .body = "body"}),
                IsOkAndHolds(testing::EndsWith("a [body]")));
    EXPECT_OK(SleepFor(milliseconds(250)));
  }
  EXPECT_EQ(tls.Statistics().handshakes, 1U);
}

BOBBIN_IO_TEST(HttpsTest, ALaterConnectionResumesTheSession) {
  const io::TlsServerContext tls = ServerContext();
  Server server({.tls = tls}, ListenHere(), [](Request&) {
    return Response{.fields = {{"Connection", "close"}}, .body = "once"};
  });
  Client client({.tls = ClientContext()});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Fetch(client, {.url = Url(server.local_address())}),
                IsOkAndHolds(std::string("once")));
  }
  EXPECT_EQ(client.Statistics().connected, 3U);
  EXPECT_EQ(tls.Statistics().resumed, 2U);
}

BOBBIN_IO_TEST(HttpsTest, AServerThatIsNotWhoItShouldBeGetsNoRequest) {
  std::atomic<int> requests{0};
  Server server({.tls = ServerContext()}, ListenHere(), [&](Request&) {
    ++requests;
    return Response{};
  });
  const TestAuthority other("another authority");
  Client client({.tls = ClientContext({.roots_pem = other.root_pem()})});
  const auto response = client.Get(Url(server.local_address()));
  ASSERT_THAT(response, StatusIs(kUnauthenticated));
  EXPECT_THAT(std::string(MessageOf(response.status())),
              HasSubstr("tls handshake with localhost: the peer's certificate is not good"));
  Client trusting({.tls = ClientContext()});
  EXPECT_THAT(trusting.Get("https://127.0.0.2:" + std::to_string(server.local_address().port())),
              Not(IsOk()));
  EXPECT_EQ(requests, 0);
}

BOBBIN_IO_TEST(HttpsTest, WhereThePoolForHandshakesIsFullNobodyIsServedAndNothingLogged) {
  PlatformPool pool({.name = "handshakes", .threads = 1, .queue_max = 1});
  const io::TlsServerContext tls = ServerContext({.handshakes = &pool});
  Server server({.tls = tls}, ListenHere(), Mirror);
  Client client({.tls = ClientContext()});
  const KeptLines lines;
  Event go_on;
  TaskGroup busy;
  for (int i = 0; i < 2; ++i) {
    busy.Spawn([&] { EXPECT_OK(pool.RunBlocking([&] { go_on.Wait().IgnoreError(); })); });
  }
  AwaitTrue([&] { return pool.Statistics().active == 1 && pool.Statistics().queued == 1; });
  EXPECT_THAT(client.Get(Url(server.local_address())), StatusIs(kUnavailable));
  EXPECT_EQ(tls.Statistics().failed, 1U);
  EXPECT_THAT(lines.With("tls handshake"), testing::IsEmpty());
  go_on.Set();
  EXPECT_OK(busy.Wait());
  EXPECT_OK(Fetch(client, {.url = Url(server.local_address())}));
}

BOBBIN_IO_TEST(HttpsTest, WhatAHandlerAnswersThatADrainHasCancelledIsSent) {
  Event is_busy;
  Server server({.tls = ServerContext()}, ListenHere(), [&](Request&) -> absl::StatusOr<Response> {
    is_busy.Set();
    EXPECT_THAT(Event().Wait(), StatusIs(kCancelled));
    return Response{.status = 503, .body = "later"};
  });
  VirtualThread asker = Spawn([&] {
    Client client({.tls = ClientContext()});
    auto response = client.Get(Url(server.local_address()));
    ASSERT_OK(response);
    EXPECT_EQ(response->status(), 503);
    EXPECT_EQ(response->Find("Connection"), "close");
    EXPECT_THAT(response->ReadAll(), IsOkAndHolds(std::string("later")));
  });
  ASSERT_OK(is_busy.Wait());
  const io::DrainResult result = server.Drain({.grace = milliseconds(0), .cancel_grace = hours(1)});
  EXPECT_EQ(result.cancelled, 1U);
  EXPECT_OK(asker.Join());
}

BOBBIN_IO_TEST(HttpsTest, WhoSpeaksNoTlsIsToldApart) {
  const io::TlsServerContext tls = ServerContext();
  Server secure({.tls = tls}, ListenHere(), Mirror);
  Server plain({}, ListenHere(), Mirror);
  Client client({.tls = ClientContext()});
  EXPECT_THAT(client.Get(Url(plain.local_address())), StatusIs(kUnavailable));
  Client without;
  EXPECT_THAT(without.Get(Url(secure.local_address())), StatusIs(kFailedPrecondition));
  const auto failed = tls.Statistics().failed;
  EXPECT_THAT(client.Get("http://" + secure.local_address().ToString() + "/"), Not(IsOk()));
  AwaitTrue([&] { return tls.Statistics().failed > failed; });
  EXPECT_OK(client.Get(Url(secure.local_address())));
}

BOBBIN_IO_TEST(HttpsTest, SecretsDoNotFollowToAnotherScheme) {
  Server secure({.tls = ServerContext()}, ListenHere(), Mirror);
  const std::string target = Url(secure.local_address(), "/end");
  Server plain({}, ListenHere(), [&](Request&) {
    return Response{.status = 302, .fields = {{"Location", target}}};
  });
  Client client({.tls = ClientContext()});
  EXPECT_THAT(Fetch(client, {.url = "http://" + plain.local_address().ToString() + "/",
                             .fields = {{"Authorization", "secret"}},
                             .redirects_max = 1}),
              IsOkAndHolds(std::string("GET /end []")));
}

// --- Connections that come to nothing, and the end

BOBBIN_IO_TEST(HttpsTest, SlowHandshakesMeetTheirDeadline) {
  const io::TlsServerContext tls = ServerContext();
  Server server({.tls = tls, .handshake_duration = milliseconds(30)}, ListenHere(), Mirror);
  io::TcpStream silent = ConnectTo(server.local_address());
  EXPECT_EQ(ReadToEnd(silent), "");
  io::TcpStream slow = ConnectTo(server.local_address());
  ASSERT_OK(slow.WriteAll(Bytes("\x16\x03\x01")));
  EXPECT_EQ(ReadToEnd(slow), "");
  AwaitTrue([&] { return tls.Statistics().failed == 2; });
}

BOBBIN_IO_TEST(HttpsTest, ADrainSaysGoodbyeAndDoesNotWaitForHandshakes) {
  Event go_on;
  std::atomic<int> busy{0};
  Server server({.tls = ServerContext(), .handshake_duration = hours(1)}, ListenHere(),
                [&](Request& request) -> absl::StatusOr<Response> {
                  if (request.target() == "/slow") {
                    ++busy;
                    BOBBIN_RETURN_IF_ERROR(go_on.Wait());
                  }
                  return Mirror(request);
                });
  const io::TlsClientContext context = ClientContext();
  const auto connect = [&](std::string_view target) {
    auto stream = io::TlsStream::Connect(context, "localhost", ConnectTo(server.local_address()));
    EXPECT_OK(stream);
    EXPECT_OK(
        stream->WriteAll(Bytes("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n")));
    return *std::move(stream);
  };
  io::TlsStream idle = connect("/");
  std::array<std::byte, 1024> buffer;
  ASSERT_OK(idle.Read(buffer));
  io::TlsStream slow = connect("/slow");
  io::TcpStream shaking = ConnectTo(server.local_address());
  AwaitTrue([&] {
    const auto now = server.Statistics().connections;
    return busy == 1 && now.idle == 2 && now.connections == 3;
  });
  io::DrainResult result;
  VirtualThread drain = Spawn([&] { result = server.Drain({.grace = hours(1)}); });
  // Both have ended, one of them with a goodbye.
  EXPECT_THAT(idle.Read(buffer), IsOkAndHolds(0U));
  ReadToEnd(shaking);
  go_on.Set();
  std::string answer;
  while (true) {
    const auto received = slow.Read(buffer);
    ASSERT_OK(received);
    if (*received == 0) break;
    answer.append(reinterpret_cast<const char*>(buffer.data()), *received);
  }
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, HasSubstr("GET /slow []"));
  slow.Close();
  EXPECT_OK(drain.Join());
  EXPECT_EQ(result.idle, 2U);
  EXPECT_EQ(result.finished, 1U);
}

// Without a length a response ends where the connection does: that end must be said.
BOBBIN_IO_TEST(HttpsTest, AResponseThatIsCutOffIsNotTakenForAWholeOne) {
  const io::TlsServerContext tls = ServerContext();
  for (const bool says_goodbye : {true, false}) {
    io::TcpListener listener = ListenHere();
    VirtualThread server = Spawn([&] {
      auto accepted = listener.Accept();
      ASSERT_OK(accepted);
      auto peer = io::TlsStream::Accept(tls, *std::move(accepted));
      ASSERT_OK(peer);
      std::array<std::byte, 1024> buffer;
      ASSERT_OK(peer->Read(buffer));
      ASSERT_OK(peer->WriteAll(Bytes("HTTP/1.1 200 OK\r\n\r\nhalf")));
      if (says_goodbye) {
        EXPECT_OK(peer->ShutdownWrite());
      } else {
        EXPECT_OK(peer->tcp().ShutdownWrite());
      }
      peer->Read(buffer).IgnoreError();
    });
    Client client({.tls = ClientContext()});
    const auto body = Fetch(client, {.url = Url(listener.local_address())});
    if (says_goodbye) {
      EXPECT_THAT(body, IsOkAndHolds(std::string("half")));
    } else {
      EXPECT_THAT(body, StatusIs(kUnavailable));
    }
    EXPECT_OK(server.Join());
  }
}

// --- Against others

// What a program writes, until it ends.
std::string OutputOf(std::string program, std::vector<std::string> arguments) {
  auto process = io::Process::Spawn({.program = std::move(program),
                                     .arguments = std::move(arguments),
                                     .output = io::StandardStream::kPipe});
  if (!process.ok()) return process.status().ToString();
  std::string all;
  std::array<std::byte, 4096> buffer;
  while (true) {
    const auto received = process->output().Read(buffer);
    if (!received.ok() || *received == 0) break;
    all.append(reinterpret_cast<const char*>(buffer.data()), *received);
  }
  EXPECT_OK(process->Wait());
  return all;
}

bool HasProgram(const std::string& program, const std::string& asked) {
  auto process = io::Process::Spawn({.program = program,
                                     .arguments = {asked},
                                     .output = io::StandardStream::kNull,
                                     .error = io::StandardStream::kNull});
  return process.ok() && process->Wait().ok();
}

BOBBIN_IO_TEST(HttpsTest, CurlIsServed) {
  if (!HasProgram("curl", "--version")) GTEST_SKIP() << "there is no curl";
  const TemporaryDirectory directory;
  const std::string roots = directory / "roots.pem";
  std::ofstream(roots) << TestAuthority::Default().root_pem();
  const std::string large = directory / "large";
  std::ofstream(large) << std::string(200'000, 'y');
  const io::TlsServerContext tls = ServerContext();
  Server server({.tls = tls}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
    return Response{.body = std::string(request.target()) + " " + std::to_string(body.size())};
  });
  const auto curl = [&](std::vector<std::string> arguments) {
    const std::vector<std::string> common = {
        "--noproxy",
        "*",
        "-sS",
        "--cacert",
        roots,
        "--resolve",
        "localhost:" + std::to_string(server.local_address().port()) + ":127.0.0.1"};
    arguments.insert(arguments.begin(), common.begin(), common.end());
    return OutputOf("curl", std::move(arguments));
  };
  const std::string url = Url(server.local_address());
  EXPECT_EQ(curl({url + "a"}), "/a 0");
  EXPECT_EQ(curl({"--tls-max", "1.2", url + "b"}), "/b 0");
  EXPECT_EQ(curl({"--data-binary", "@" + large, url + "c", url + "d"}), "/c 200000/d 200000");
  EXPECT_EQ(tls.Statistics().failed, 0U);
}

}  // namespace
}  // namespace bobbin::test
