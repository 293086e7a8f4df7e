// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/io/http/server.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using io::http::BodyWriter;
using io::http::Request;
using io::http::Response;
using io::http::Server;
using io::http::ServerOptions;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Says what it was asked.
absl::StatusOr<Response> Mirror(Request& request) {
  BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
  return Response{.body = std::string(request.method()) + " " + std::string(request.target()) +
                          " [" + body + "]"};
}

std::string Get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
}

std::string Answer(std::string_view body, std::string_view fields = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(fields) + "\r\n" + std::string(body);
}

// --- What it is for

BOBBIN_IO_TEST(HttpServerTest, ItAnswersOverAndOverOnOneConnection) {
  Server server({}, ListenHere(), Mirror);
  io::TcpStream client = ConnectTo(server.local_address());
  for (int i = 0; i < 20; ++i) {
    const std::string target = "/" + std::to_string(i);
    ASSERT_OK(client.WriteAll(Bytes(Get(target))));
    EXPECT_EQ(WithoutDates(ReadUntil(client, "[]")), Answer("GET " + target + " []"));
  }
  EXPECT_EQ(server.Statistics().requests, 20U);
  EXPECT_EQ(server.Statistics().connections.accepted, 1U);
}

BOBBIN_IO_TEST(HttpServerTest, RequestsSentAheadAreAnsweredInTheirOrder) {
  Server server({}, ListenHere(), Mirror);
  std::string questions;
  std::string answers;
  for (int i = 0; i < Rounds(500); ++i) {
    const std::string target = "/" + std::to_string(i);
    if (i % 3 == 0) {
      questions += "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
      answers += Answer("POST " + target + " [body]");
    } else if (i % 3 == 1) {
      questions += "POST " + target +
                   " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n";
      answers += Answer("POST " + target + " [body]");
    } else {
      questions += Get(target);
      answers += Answer("GET " + target + " []");
    }
  }
  EXPECT_EQ(Ask(server.local_address(), questions), answers);
}

BOBBIN_IO_TEST(HttpServerTest, ManyConnectionsAreServedAtOnce) {
  Server server({}, ListenHere(), Mirror);
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < Rounds(100); ++i) {
    clients.Spawn([&, i] {
      const std::string target = "/" + std::to_string(i);
      EXPECT_EQ(Ask(server.local_address(), Get(target)), Answer("GET " + target + " []"));
    });
  }
  EXPECT_OK(clients.Wait());
}

BOBBIN_IO_TEST(HttpServerTest, VersionAndConnectionDecideWhetherItStaysOpen) {
  Server server({}, ListenHere(), Mirror);
  // Both ask twice; the server answers as often as it keeps the connection.
  const auto ask = [&](const std::string& head) {
    return Ask(server.local_address(), head + "\r\n" + head + "\r\n");
  };
  const std::string once = "GET /";
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: x\r\n"), Answer("GET / []") + Answer("GET / []"));
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"),
            Answer("GET / []", "Connection: close\r\n"));
  EXPECT_EQ(ask("GET / HTTP/1.0\r\n"), Answer("GET / []", "Connection: close\r\n"));
  EXPECT_EQ(ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n"),
            Answer("GET / []", "Connection: keep-alive\r\n") +
                Answer("GET / []", "Connection: keep-alive\r\n"));
}

BOBBIN_IO_TEST(HttpServerTest, AHandlerSeesTheRequestAsItWasSent) {
  Server server({}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    EXPECT_EQ(request.method(), "PATCH");
    EXPECT_EQ(request.target(), "/a%20b?c=d?e");
    EXPECT_EQ(request.path(), "/a%20b");
    EXPECT_EQ(request.query(), "c=d?e");
    EXPECT_EQ(request.minor_version(), 1);
    EXPECT_EQ(request.content_length(), 0U);
    EXPECT_EQ(request.Find("x-one"), "1");
    EXPECT_EQ(request.Find("x-two"), std::nullopt);
    EXPECT_EQ(request.fields().size(), 2U);
    EXPECT_OK(request.peer_address());
    return Response{.status = 201,
                    .fields = {{"Content-Type", "text/html"}, {"X-A", "1"}, {"X-B", "2"}},
                    .body = "made"};
  });
  EXPECT_EQ(
      Ask(server.local_address(), "PATCH /a%20b?c=d?e HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n\r\n"),
      "HTTP/1.1 201 Created\r\nContent-Type: text/html\r\nX-A: 1\r\nX-B: 2\r\n"
      "Content-Length: 4\r\n\r\nmade");
}

BOBBIN_IO_TEST(HttpServerTest, EveryAnswerSaysWhenUnlessTheHandlerDoes) {
  Server server({}, ListenHere(), [](Request& request) {
    Response response{.body = "."};
    if (request.target() == "/own") response.fields.Add("Date", "today");
    return response;
  });
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(Bytes(Get("/"))));
  EXPECT_THAT(ReadUntil(client, "\r\n\r\n."),
              testing::ContainsRegex("\r\nDate: [A-Z][a-z][a-z], [0-9][0-9] [A-Z][a-z][a-z] 20[0-9]"
                                     "[0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9] GMT\r\n"));
  ASSERT_OK(client.WriteAll(Bytes(Get("/own"))));
  EXPECT_EQ(ReadUntil(client, "\r\n\r\n."),
            "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 1\r\n\r\n.");
}

// --- Bodies

BOBBIN_IO_TEST(HttpServerTest, ALargeBodyStreamsInAndOut) {
  Server server({.body_bytes_max = uint64_t{64} << 20}, ListenHere(), [](Request& request) {
    Response response;
    if (request.target() == "/length") response.stream_bytes = request.content_length();
    response.stream = [&request](BodyWriter& out) -> absl::Status {
      std::array<std::byte, 5000> buffer;
      while (true) {
        BOBBIN_ASSIGN_OR_RETURN(const size_t read, request.ReadBody(buffer));
        if (read == 0) return absl::OkStatus();
        BOBBIN_RETURN_IF_ERROR(out.Write({reinterpret_cast<const char*>(buffer.data()), read}));
      }
    };
    return response;
  });
  std::string body;
  for (size_t i = 0; i < 200'000; ++i) body += static_cast<char>(PatternAt(i));
  for (const bool is_chunked : {false, true}) {
    io::TcpStream client = ConnectTo(server.local_address());
    VirtualThread writer = Spawn([&]() -> absl::Status {
      std::string head = "POST /" + std::string(is_chunked ? "" : "length") +
                         " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
      if (!is_chunked) {
        head += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
        BOBBIN_RETURN_IF_ERROR(client.WriteAll(Bytes(head)));
        return client.WriteAll(Bytes(body));
      }
      BOBBIN_RETURN_IF_ERROR(client.WriteAll(Bytes(head + "Transfer-Encoding: chunked\r\n\r\n")));
      for (size_t at = 0; at < body.size(); at += 10'000) {
        BOBBIN_RETURN_IF_ERROR(
            client.WriteAll(Bytes("2710\r\n" + body.substr(at, 10'000) + "\r\n")));
      }
      return client.WriteAll(Bytes("0\r\n\r\n"));
    });
    const std::string answer = WithoutDates(ReadToEnd(client));
    EXPECT_OK(writer.Join());
    if (!is_chunked) {
      EXPECT_EQ(answer, Answer(body, "Connection: close\r\n"));
      continue;
    }
    // Chunks of its own.
    const size_t end = answer.find("\r\n\r\n") + 4;
    EXPECT_EQ(answer.substr(0, end),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    std::string decoded;
    for (size_t at = end; at < answer.size();) {
      const size_t bytes = std::stoul(answer.substr(at, 16), nullptr, 16);
      at = answer.find("\r\n", at) + 2;
      decoded += answer.substr(at, bytes);
      at += bytes + 2;
    }
    EXPECT_EQ(decoded, body);
  }
}

BOBBIN_IO_TEST(HttpServerTest, AStreamToAnOldClientEndsWithTheConnection) {
  Server server({}, ListenHere(), [](Request&) {
    return Response{.stream = [](BodyWriter& out) { return out.Write("old"); }};
  });
  EXPECT_EQ(Ask(server.local_address(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nold");
}

BOBBIN_IO_TEST(HttpServerTest, AFlushedPieceArrivesBeforeTheNext) {
  Event go_on;
  Server server({}, ListenHere(), [&](Request&) {
    return Response{.stream = [&](BodyWriter& out) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(out.Write("one"));
      BOBBIN_RETURN_IF_ERROR(out.Flush());
      BOBBIN_RETURN_IF_ERROR(go_on.Wait());
      return out.Write("two");
    }};
  });
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(Bytes(Get("/"))));
  EXPECT_THAT(ReadUntil(client, "one\r\n"), EndsWith("\r\n\r\n3\r\none\r\n"));
  go_on.Set();
  EXPECT_EQ(ReadUntil(client, "0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
}

BOBBIN_IO_TEST(HttpServerTest, AnAnswerThatBreaksOffCanBeTold) {
  Server server({}, ListenHere(), [](Request& request) {
    Response response{.stream = [](BodyWriter& out) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(out.Write("half"));
      return absl::UnavailableError("the other half");
    }};
    if (request.target() == "/length") response.stream_bytes = 8;
    return response;
  });
  EXPECT_THAT(Ask(server.local_address(), Get("/") + Get("/")),
              EndsWith("chunked\r\n\r\n4\r\nhalf\r\n"));
  EXPECT_THAT(Ask(server.local_address(), Get("/length") + Get("/")),
              EndsWith("Length: 8\r\n\r\nhalf"));
}

// However many were gathered, and whatever the handler waits for.
BOBBIN_IO_TEST(HttpServerTest, AnAnswerDoesNotWaitForALaterHandlerThatWaits) {
  const size_t waits = 3 * static_cast<size_t>(Rounds(20));
  std::vector<Event> go_on(waits);
  Server server({}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    if (request.path() == "/event") {
      BOBBIN_RETURN_IF_ERROR(go_on[std::stoul(std::string(request.query()))].Wait());
    }
    return Mirror(request);
  });
  io::TcpStream client = ConnectTo(server.local_address());
  for (size_t wait = 0; wait < waits;) {
    std::string questions;
    for (size_t i = wait; i < wait + 3; ++i) {
      for (int more = static_cast<int>(random().Below(4)); more >= 0; --more) {
        questions += Get("/" + std::to_string(more));
      }
      questions += Get("/event?" + std::to_string(i));
    }
    ASSERT_OK(client.WriteAll(Bytes(questions)));
    for (const size_t end = wait + 3; wait < end; ++wait) {
      EXPECT_THAT(WithoutDates(ReadUntil(client, "/0 []")), EndsWith(Answer("GET /0 []")));
      go_on[wait].Set();
      const std::string own = "GET /event?" + std::to_string(wait) + " []";
      EXPECT_EQ(WithoutDates(ReadUntil(client, own)), Answer(own));
    }
  }
}

// Nor for one that reads a body that does not come.
BOBBIN_IO_TEST(HttpServerTest, AnAnswerDoesNotWaitForABody) {
  Server server({}, ListenHere(), Mirror);
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(
      Bytes(Get("/a") + Get("/b") + "POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")));
  EXPECT_EQ(WithoutDates(ReadUntil(client, "/b []")), Answer("GET /a []") + Answer("GET /b []"));
  ASSERT_OK(client.WriteAll(Bytes("body")));
  EXPECT_EQ(WithoutDates(ReadUntil(client, "]")), Answer("POST /c [body]"));
}

// The peer takes none of the answers, and then the server goes.
BOBBIN_IO_TEST(HttpServerTest, AServerGoesWhileAnswersOfAWaitingConnectionAreSent) {
  Event go_on;
  std::optional<Server> server;
  server.emplace(ServerOptions{}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    if (request.path() == "/wait") BOBBIN_RETURN_IF_ERROR(go_on.Wait());
    return Response{.body = std::string(15'000, 'x')};
  });
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(ConnectTo(server->local_address()));
    ASSERT_OK(clients.back().SetOptions({.receive_buffer_bytes = 2048}));
    ASSERT_OK(clients.back().WriteAll(Bytes(Get("/") + Get("/wait") + Get("/"))));
  }
  AwaitTrue([&] { return server->Statistics().requests == 2 * clients.size(); });
  server.reset();
  for (io::TcpStream& client : clients) ReadToEnd(client);
}

BOBBIN_IO_TEST(HttpServerTest, AHeadAnswerHasTheHeaderOnly) {
  std::atomic<int> streamed{0};
  Server server({}, ListenHere(), [&](Request& request) {
    if (request.target() == "/stream") {
      return Response{.stream =
                          [&](BodyWriter& out) {
                            ++streamed;
                            return out.Write("long");
                          },
                      .stream_bytes = 4};
    }
    return Response{.body = "text"};
  });
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
  EXPECT_EQ(Ask(server.local_address(),
                "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" +
                    std::string("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n") + Get("/")),
            head + head + Answer("text"));
  EXPECT_EQ(streamed, 0);
}

BOBBIN_IO_TEST(HttpServerTest, NoContentHasNeitherLengthNorBody) {
  Server server({}, ListenHere(),
                [](Request&) { return Response{.status = 204, .body = "ignored"}; });
  EXPECT_EQ(Ask(server.local_address(), Get("/")), "HTTP/1.1 204 No Content\r\n\r\n");
}

BOBBIN_IO_TEST(HttpServerTest, ContinueIsSentWhenTheBodyIsWanted) {
  Server server({}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/unwanted") return Response{.status = 403, .body = "no"};
    return Mirror(request);
  });
  io::TcpStream client = ConnectTo(server.local_address());
  const auto head = [](std::string_view target) {
    return "PUT " + std::string(target) +
           " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
  };
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(client.WriteAll(Bytes(head("/"))));
    EXPECT_EQ(ReadUntil(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    ASSERT_OK(client.WriteAll(Bytes("body")));
    EXPECT_EQ(WithoutDates(ReadUntil(client, "]")), Answer("PUT / [body]"));
  }
  // The answer comes without the body, which the client may never send: nothing can follow.
  ASSERT_OK(client.WriteAll(Bytes(head("/unwanted"))));
  EXPECT_EQ(WithoutDates(ReadToEnd(client)),
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
}

BOBBIN_IO_TEST(HttpServerTest, ABodyThatNobodyReadIsPassedOver) {
  Server server({.body_bytes_max = 10'000'000}, ListenHere(),
                [](Request&) { return Response{.body = "."}; });
  const auto post = [](size_t bytes) {
    return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'b');
  };
  EXPECT_EQ(Ask(server.local_address(), post(100'000) + Get("/")), Answer(".") + Answer("."));
  // Too much for that: the answer arrives all the same, and the connection is closed.
  EXPECT_EQ(Ask(server.local_address(), post(1'000'000) + Get("/")), Answer("."));
}

// --- Limits

BOBBIN_IO_TEST(HttpServerTest, WhatIsTooLargeIsRefused) {
  Server server({.request_line_bytes_max = 100, .header_bytes_max = 300, .body_bytes_max = 1000},
                ListenHere(), Mirror);
  const auto ask = [&](const std::string& bytes) { return Ask(server.local_address(), bytes); };
  EXPECT_THAT(ask(Get("/" + std::string(70, 'a'))), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(Get("/" + std::string(100, 'a'))), StartsWith("HTTP/1.1 414 URI Too Long\r\n"));
  EXPECT_THAT(ask("GET /" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 414"));
  EXPECT_THAT(ask(Get("/", "A: " + std::string(200, 'a') + "\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(Get("/", "A: " + std::string(300, 'a') + "\r\n")), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431"));
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_THAT(ask(post + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'b')),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(
      ask(post + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'b')),
      AllOf(StartsWith("HTTP/1.1 413 Content Too Large\r\n"), HasSubstr("Connection: close\r\n")));
  EXPECT_THAT(ask(post + "Content-Length: 99999999999\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask(post + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'b')),
              StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(server.Statistics().refused, 6U);
}

BOBBIN_IO_TEST(HttpServerTest, SlowSendersMeetTheirDeadlines) {
  Server server({.header_duration = milliseconds(20), .body_duration = milliseconds(20)},
                ListenHere(), Mirror);
  const auto ask = [&](std::string_view bytes) {
    io::TcpStream client = ConnectTo(server.local_address());
    EXPECT_OK(client.WriteAll(Bytes(bytes)));
    return WithoutDates(ReadToEnd(client));
  };
  EXPECT_THAT(ask("GET / HT"), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo"),
              StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
}

BOBBIN_IO_TEST(HttpServerTest, WithoutARequestAConnectionIsClosedInTime) {
  Server server({.idle_duration = milliseconds(20)}, ListenHere(), Mirror);
  io::TcpStream never = ConnectTo(server.local_address());
  EXPECT_EQ(ReadToEnd(never), "");
  io::TcpStream once = ConnectTo(server.local_address());
  ASSERT_OK(once.WriteAll(Bytes(Get("/"))));
  EXPECT_EQ(WithoutDates(ReadToEnd(once)), Answer("GET / []"));
  EXPECT_EQ(server.Statistics().connections.failed, 0U);
}

// Without a request it soon gives back what it holds, and takes it anew with the next one.
BOBBIN_IO_TEST(HttpServerTest, AConnectionGoesOnAfterARest) {
  Server server({}, ListenHere(), Mirror);
  const std::string long_target = "/" + std::string(7000, 'a');
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(ConnectTo(server.local_address()));
  for (int round = 0; round < 2; ++round) {
    for (io::TcpStream& client : clients) {
      // Also one that does not fit into a buffer of the pool, and one in pieces.
      ASSERT_OK(client.WriteAll(Bytes(Get(long_target) + "POST /b HTTP/1.1\r\nHost: x\r\n")));
      EXPECT_EQ(WithoutDates(ReadUntil(client, "[]")), Answer("GET " + long_target + " []"));
      ASSERT_OK(client.WriteAll(Bytes("Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n")));
      ASSERT_OK(client.WriteAll(Bytes("0\r\n\r\n")));
      EXPECT_EQ(WithoutDates(ReadUntil(client, "[bo]")), Answer("POST /b [bo]"));
    }
    EXPECT_OK(SleepFor(milliseconds(250)));
  }
  AwaitTrue([&] { return server.Statistics().connections.idle == clients.size(); });
  const io::DrainResult result = server.Drain({.grace = hours(1)});
  EXPECT_EQ(result.idle, clients.size());
  for (io::TcpStream& client : clients) EXPECT_EQ(ReadToEnd(client), "");
}

BOBBIN_IO_TEST(HttpServerTest, WhoTakesNothingIsDroppedInTime) {
  Server server({.write_duration = milliseconds(20)}, ListenHere(),
                [](Request&) { return Response{.body = std::string(size_t{32} << 20, 'x')}; });
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(Bytes(Get("/"))));
  AwaitTrue([&] { return server.Statistics().connections.accepted == 1; });
  AwaitTrue([&] { return server.Statistics().connections.connections == 0; });
  EXPECT_EQ(server.Statistics().connections.failed, 1U);
}

// --- What is refused

struct RawCase {
  std::string_view what;
  std::string bytes;
  // What the answers begin with, one for each line; "" for none.
  std::vector<std::string_view> answers;
};

std::vector<RawCase> RawCases() {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string next = Get("/next");
  return {
      {"nothing", "", {}},
      {"half a line", "GET / HT", {}},
      {"half a header", "GET / HTTP/1.1\r\nHost: x\r\n", {}},
      {"two", Get("/") + next, {"200", "200"}},
      {"an empty line before each", "\r\n" + Get("/") + "\r\n" + next, {"200", "200"}},
      {"three empty lines", "\r\n\r\n\r\n" + Get("/"), {"400"}},
      {"another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {"505"}},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 12), {"400"}},
      {"both lengths",
       post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
       {"400"}},
      {"both lengths, the other way round",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + next,
       {"400"}},
      {"two lengths", post + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + next, {"400"}},
      {"gzip", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + next, {"501"}},
      {"folded", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c: d\r\n\r\n" + next, {"400"}},
      {"folded length", post + "Content-Length:\r\n 44\r\n\r\n" + next, {"400"}},
      {"space before a colon", post + "Content-Length : 44\r\n\r\n" + next, {"400"}},
      {"bare LF", "GET / HTTP/1.1\nHost: x\n\n" + next, {"400"}},
      {"chunk", chunked + "1\r\na\r\n0\r\n\r\n" + next, {"200", "200"}},
      {"chunk with a sign", chunked + "+1\r\na\r\n0\r\n\r\n" + next, {"400"}},
      {"chunk beyond 64 bits", chunked + "10000000000000001\r\na\r\n0\r\n\r\n" + next, {"400"}},
      {"chunk of all bits", chunked + "ffffffffffffffff\r\n" + next, {"413", ""}},
      {"chunk that is longer than it says", chunked + "1\r\nab\r\n0\r\n\r\n" + next, {"400"}},
      {"chunk with a bare LF", chunked + "1\na\n0\n\n" + next, {"400"}},
      {"body that ends early", post + "Content-Length: 10\r\n\r\nshort", {"503"}},
      {"chunks that end early", chunked + "a\r\nshort", {"503"}},
      {"trailers", chunked + "1\r\na\r\n0\r\nA: b\r\n\r\n" + next, {"200", "200"}},
  };
}

std::vector<std::string> StatusesOf(std::string_view answers) {
  std::vector<std::string> statuses;
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  for (size_t at = answers.find(kVersion); at != answers.npos;
       at = answers.find(kVersion, at + 1)) {
    statuses.emplace_back(answers.substr(at + kVersion.size(), 3));
  }
  return statuses;
}

BOBBIN_IO_TEST(HttpServerTest, WhatIsNotClearlyOneRequestIsRefusedAndNothingAfterItAnswered) {
  Server server({.body_bytes_max = 1000}, ListenHere(), Mirror);
  for (const RawCase& each : RawCases()) {
    std::vector<std::string> wanted(each.answers.begin(), each.answers.end());
    std::erase(wanted, "");
    EXPECT_EQ(StatusesOf(Ask(server.local_address(), each.bytes)), wanted) << each.what;
  }
}

// However the bytes are cut, the answers are the same.
BOBBIN_IO_TEST(HttpServerTest, PiecesOfARequestMeanWhatTheWholeMeans) {
  Server server({.body_bytes_max = 1000}, ListenHere(), Mirror);
  std::vector<std::string> all;
  for (const RawCase& each : RawCases()) all.push_back(each.bytes);
  for (const std::string& bytes : all) {
    const std::string whole = Ask(server.local_address(), bytes);
    TaskGroup askers({.placement = Placement::kSpread, .live_max = 16});
    const size_t step = kUnderSanitizer || carriers() != 2 ? 7 : 1;
    for (size_t cut = 1; cut < bytes.size(); cut += step) {
      askers.Spawn([&, cut] {
        io::TcpStream stream = ConnectTo(server.local_address());
        const std::string_view text = bytes;
        bool is_open = stream.WriteAll(Bytes(text.substr(0, cut))).ok();
        for (int i = 0; i < 3; ++i) Yield();
        is_open = is_open && stream.WriteAll(Bytes(text.substr(cut))).ok();
        if (is_open) stream.ShutdownWrite().IgnoreError();
        EXPECT_EQ(WithoutDates(ReadToEnd(stream)), whole) << "cut at " << cut << ":\n" << bytes;
      });
    }
    EXPECT_OK(askers.Wait());
  }
}

// Bytes that were changed at random: whatever they mean, the server answers, ends the connection
// and goes on.
BOBBIN_IO_TEST(HttpServerTest, ItSurvivesMutations) {
  Server server({.body_bytes_max = 1000}, ListenHere(), Mirror);
  const std::vector<RawCase> corpus = RawCases();
  constexpr std::string_view kSpecial = "\r\n :;,0fF\t\0\x7f/";
  for (int round = 0; round < Rounds(300); ++round) {
    std::string bytes = corpus[random().Below(corpus.size())].bytes;
    for (auto changes = random().Between(1, 4); changes > 0 && !bytes.empty(); --changes) {
      const size_t at = random().Below(bytes.size());
      const char c = random().OneIn(2) ? kSpecial[random().Below(kSpecial.size())]
                                       : static_cast<char>(random().Below(256));
      switch (random().Below(3)) {
        case 0:
          bytes[at] = c;
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        default:
          bytes.erase(at, static_cast<size_t>(random().Between(1, 3)));
      }
    }
    const std::string answers = Ask(server.local_address(), bytes);
    EXPECT_TRUE(answers.empty() || answers.starts_with("HTTP/1.1 ")) << bytes;
  }
  EXPECT_EQ(Ask(server.local_address(), Get("/")), Answer("GET / []"));
  EXPECT_EQ(server.Statistics().exceptions, 0U);
}

// --- Handlers that fail

BOBBIN_IO_TEST(HttpServerTest, AnErrorBecomesTheAnswerThatFitsIt) {
  Server server({}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    return absl::Status(
        static_cast<absl::StatusCode>(std::stoi(std::string(request.path().substr(1)))), "secret");
  });
  const std::pair<absl::StatusCode, std::string> answers[] = {
      {kInvalidArgument, "400"},
      {absl::StatusCode::kUnauthenticated, "401"},
      {kPermissionDenied, "403"},
      {absl::StatusCode::kNotFound, "404"},
      {kAborted, "409"},
      {kResourceExhausted, "429"},
      {absl::StatusCode::kInternal, "500"},
      {kUnimplemented, "501"},
      {kUnavailable, "503"},
      {kDeadlineExceeded, "504"}};
  for (const auto& [code, status] : answers) {
    const std::string answer =
        Ask(server.local_address(), Get("/" + std::to_string(static_cast<int>(code))));
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 " + status), Not(HasSubstr("secret"))));
  }
}

BOBBIN_IO_TEST(HttpServerTest, AnExceptionIsAnsweredReportedAndCounted) {
  Server server({.name = "shaky"}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/throw") throw std::runtime_error("oh dear");
    return Mirror(request);
  });
  testing::internal::CaptureStderr();
  const std::string answers = Ask(server.local_address(), Get("/throw") + Get("/"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  EXPECT_THAT(answers, EndsWith(Answer("GET / []")));
  EXPECT_THAT(said,
              HasSubstr("shaky: the handler of GET /throw threw: std::runtime_error: oh dear"));
  EXPECT_EQ(server.Statistics().exceptions, 1U);
}

BOBBIN_IO_TEST(HttpServerTest, AnAnswerThatWouldBreakTheHeaderIsNotSent) {
  Server server({}, ListenHere(), [](Request& request) {
    Response response{.body = "."};
    if (request.target() == "/value") response.fields.Add("A", "b\r\nSet-Cookie: c");
    if (request.target() == "/name") response.fields.Add("A: b", "c");
    if (request.target() == "/length") response.fields.Add("Content-Length", "7");
    if (request.target() == "/status") response.status = 99;
    return response;
  });
  for (const std::string_view target : {"/value", "/name", "/length", "/status"}) {
    EXPECT_THAT(Ask(server.local_address(), Get(target)),
                AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("Cookie"))));
  }
}

// --- The end

BOBBIN_IO_TEST(HttpServerTest, ADrainLetsRequestsFinishAndSaysThatItCloses) {
  Event go_on;
  std::atomic<int> busy{0};
  Server server({}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/slow") {
      ++busy;
      BOBBIN_RETURN_IF_ERROR(go_on.Wait());
    }
    return Mirror(request);
  });
  std::vector<io::TcpStream> idle;
  for (int i = 0; i < 10; ++i) {
    idle.push_back(ConnectTo(server.local_address()));
    ASSERT_OK(idle.back().WriteAll(Bytes(Get("/"))));
    ReadUntil(idle.back(), "[]");
  }
  std::vector<io::TcpStream> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(ConnectTo(server.local_address()));
    ASSERT_OK(slow.back().WriteAll(Bytes(Get("/slow") + Get("/never"))));
  }
  AwaitTrue([&] { return busy == 3 && server.Statistics().connections.idle == 10; });
  io::DrainResult result;
  VirtualThread drain = Spawn([&] { result = server.Drain({.grace = hours(1)}); });
  for (io::TcpStream& client : idle) EXPECT_EQ(ReadToEnd(client), "");
  go_on.Set();
  for (io::TcpStream& client : slow) {
    EXPECT_EQ(WithoutDates(ReadToEnd(client)), Answer("GET /slow []", "Connection: close\r\n"));
    client.Close();
  }
  EXPECT_OK(drain.Join());
  EXPECT_EQ(result.idle, 10U);
  EXPECT_EQ(result.finished, 3U);
  EXPECT_EQ(result.cancelled, 0U);
}

// What a closed socket has not read has the system reset the connection, and whoever had not yet
// got the last answer never gets it.
BOBBIN_IO_TEST(HttpServerTest, ARequestBehindTheLastOneResetsNothing) {
  Event go_on;
  std::atomic<int> busy{0};
  Server server({}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    ++busy;
    BOBBIN_RETURN_IF_ERROR(go_on.Wait());
    return Mirror(request);
  });
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(Bytes(Get("/", "Connection: close\r\n"))));
  AwaitTrue([&] { return busy == 1; });
  // It comes while the server does not look.
  ASSERT_OK(client.WriteAll(Bytes(Get("/never"))));
  go_on.Set();
  EXPECT_THAT(ReadUntil(client, "[]"), EndsWith("GET / []"));
  std::array<std::byte, 1> byte;
  EXPECT_THAT(client.Read(byte), IsOkAndHolds(size_t{0}));
  EXPECT_EQ(busy, 1);
}

// A handler that waits until it is asked to stop, and then answers as `answer` says.
class Stubborn {
 public:
  explicit Stubborn(absl::StatusOr<Response> (*answer)(absl::Status), ServerOptions options = {})
      : server_(std::move(options), ListenHere(), [this, answer](Request& request) {
          if (request.target() != "/slow") return Mirror(request);
          ++busy_;
          return answer(Event().Wait());
        }) {}

  Server& server() { return server_; }
  io::TcpStream Connect(std::string_view requests) {
    const int before = busy_;
    io::TcpStream client = ConnectTo(server_.local_address());
    EXPECT_OK(client.WriteAll(Bytes(requests)));
    AwaitTrue([&] { return busy_ == before + 1; });
    return client;
  }

 private:
  std::atomic<int> busy_{0};
  Server server_;
};

BOBBIN_IO_TEST(HttpServerTest, WhatAHandlerAnswersThatADrainHasCancelledIsSent) {
  const auto drain = [](Stubborn& stubborn, std::string_view requests) {
    io::TcpStream client = stubborn.Connect(requests);
    VirtualThread drainer = Spawn([&] {
      const io::DrainResult result =
          stubborn.server().Drain({.grace = milliseconds(0), .cancel_grace = hours(1)});
      EXPECT_EQ(result.cancelled, 1U);
      EXPECT_THAT(result.stragglers, testing::IsEmpty());
    });
    const std::string answer = WithoutDates(ReadToEnd(client));
    EXPECT_OK(drainer.Join());
    return answer;
  };
  {
    Stubborn stubborn([](absl::Status stopped) -> absl::StatusOr<Response> {
      EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kCancelled));
      return Response{.status = 503, .fields = {{"Retry-After", "1"}}, .body = "later"};
    });
    const std::string later =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
        "Content-Length: 5\r\nConnection: close\r\n\r\nlater";
    EXPECT_EQ(drain(stubborn, Get("/slow")), later);
  }
  {
    // Behind an answer that came before, and with a request behind it that nobody reads.
    Stubborn stubborn([](absl::Status) -> absl::StatusOr<Response> {
      return Response{.body = "done all the same"};
    });
    EXPECT_EQ(drain(stubborn, Get("/before") + Get("/slow") + Get("/never")),
              Answer("GET /before []") + Answer("done all the same", "Connection: close\r\n"));
  }
  {
    Stubborn stubborn([](absl::Status stopped) -> absl::StatusOr<Response> { return stopped; });
    EXPECT_THAT(drain(stubborn, Get("/slow")),
                AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nConnection: close\r\n")));
  }
  {
    // More than is gathered.
    Stubborn stubborn([](absl::Status) -> absl::StatusOr<Response> {
      return Response{.body = std::string(size_t{64} << 10, 'x')};
    });
    EXPECT_EQ(drain(stubborn, Get("/slow")),
              Answer(std::string(size_t{64} << 10, 'x'), "Connection: close\r\n"));
  }
}

BOBBIN_IO_TEST(HttpServerTest, AClientThatTakesNoLastAnswerDoesNotHoldADrain) {
  Stubborn stubborn([](absl::Status) -> absl::StatusOr<Response> {
    return Response{.body = std::string(size_t{32} << 20, 'x')};
  });
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(stubborn.Connect(Get("/slow")));
  const io::DrainResult result =
      stubborn.server().Drain({.grace = milliseconds(0), .cancel_grace = hours(1)});
  EXPECT_EQ(result.cancelled, 3U);
  EXPECT_THAT(result.stragglers, testing::IsEmpty());
}

BOBBIN_IO_TEST(HttpServerTest, ABodyThatIsMadeWhileItIsSentSeesThatADrainCancels) {
  Event has_begun;
  absl::Status seen;
  Server server({}, ListenHere(), [&](Request&) {
    return Response{.stream = [&](BodyWriter& body) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(body.Write("first"));
      BOBBIN_RETURN_IF_ERROR(body.Flush());
      has_begun.Set();
      Event().Wait().IgnoreError();
      seen = body.Write(std::string(size_t{1} << 20, 'x'));
      return seen;
    }};
  });
  io::TcpStream client = ConnectTo(server.local_address());
  ASSERT_OK(client.WriteAll(Bytes(Get("/"))));
  ASSERT_OK(has_begun.Wait());
  const io::DrainResult result = server.Drain({.grace = milliseconds(0), .cancel_grace = hours(1)});
  EXPECT_EQ(result.cancelled, 1U);
  EXPECT_THAT(seen, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(ReadToEnd(client), Not(EndsWith("0\r\n\r\n")));
}

// --- Another client

BOBBIN_IO_TEST(HttpServerTest, CurlIsServed) {
  // Waiting for a process is blocking work.
  const auto has_curl =
      RunBlocking([] { return std::system("curl --version > /dev/null 2>&1") == 0; });
  if (!has_curl.ok() || !*has_curl) GTEST_SKIP() << "there is no curl";
  Server server({}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/stream") {
      return Response{.stream = [](BodyWriter& out) -> absl::Status {
        for (int i = 0; i < 3; ++i) BOBBIN_RETURN_IF_ERROR(out.Write("chunk "));
        return absl::OkStatus();
      }};
    }
    return Mirror(request);
  });
  const std::string base = "http://" + server.local_address().ToString();
  const auto curl = [&](const std::string& arguments) {
    std::string output;
    EXPECT_OK(RunBlocking([&] {
      FILE* const pipe = ::popen(("curl --noproxy '*' -sS " + arguments + " 2>&1").c_str(), "r");
      std::array<char, 256> buffer;
      while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
      EXPECT_EQ(::pclose(pipe), 0);
    }));
    return output;
  };
  EXPECT_EQ(curl(base + "/a"), "GET /a []");
  EXPECT_EQ(curl(base + "/stream"), "chunk chunk chunk ");
  EXPECT_EQ(curl("-0 " + base + "/stream"), "chunk chunk chunk ");
  EXPECT_EQ(curl("-d body " + base + "/b"), "POST /b [body]");
  EXPECT_EQ(curl("-H 'Transfer-Encoding: chunked' -d body " + base + "/c"), "POST /c [body]");
  EXPECT_EQ(curl("-H 'Expect: 100-continue' -d body " + base + "/d"), "POST /d [body]");
  EXPECT_THAT(curl("-I " + base + "/e"), HasSubstr("Content-Length: 10\r\n"));
  EXPECT_EQ(curl(base + "/f " + base + "/g"), "GET /f []GET /g []");
}

}  // namespace
}  // namespace bobbin::test
