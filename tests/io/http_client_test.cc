// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <atomic>
#include <chrono>
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
#include <bobbin/io/server.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using io::http::BodyWriter;
using io::http::Client;
using io::http::ClientRequest;
using io::http::Request;
using io::http::Response;
using io::http::Router;
using io::http::Server;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

absl::StatusOr<Response> Mirror(Request& request) {
  BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
  std::string fields;
  for (const auto& field : request.fields()) {
    if (field.name.starts_with("X-")) fields += std::string(field.value) + " ";
  }
  return Response{.fields = {{"X-Fields", fields}},
                  .body = std::string(request.method()) + " " + std::string(request.target()) +
                          " [" + body + "]"};
}

std::string Url(const io::SocketAddress& address, std::string_view target = "/") {
  return "http://" + address.ToString() + std::string(target);
}

// The whole body of what comes back.
absl::StatusOr<std::string> Fetch(Client& client, ClientRequest request) {
  BOBBIN_ASSIGN_OR_RETURN(auto response, client.Send(std::move(request)));
  return response.ReadAll();
}

// A server that knows no HTTP: sends `answer` once a header has come, as often as it is asked for
// on a connection, up to `times`; then closes that.
class Script {
 public:
  explicit Script(std::string answer, int times = 1000)
      : answer_(std::move(answer)),
        times_(times),
        server_({}, ListenHere(), [this](io::ServerConnection& connection) -> absl::Status {
          for (int i = 0; i < times_; ++i) {
            if (ReadUntil(connection.stream(), "\r\n\r\n").empty()) return absl::OkStatus();
            ++asked_;
            BOBBIN_RETURN_IF_ERROR(connection.stream().WriteAll(Bytes(answer_)));
          }
          return connection.stream().ShutdownWrite();
        }) {}
  const io::SocketAddress& address() const { return server_.local_address(); }
  int asked() const { return asked_; }
  uint64_t accepted() const { return server_.Statistics().accepted; }

 private:
  const std::string answer_;
  const int times_;
  std::atomic<int> asked_{0};
  io::Server server_;
};

// --- What it is for

BOBBIN_IO_TEST(HttpClientTest, ItGetsWhatIsThere) {
  Server server({}, ListenHere(), Mirror);
  Client client;
  auto response = client.Send(
      {.url = Url(server.local_address(), "/a?b#c"), .fields = {{"X-One", "1"}, {"X-Two", "2"}}});
  ASSERT_OK(response);
  EXPECT_EQ(response->status(), 200);
  EXPECT_EQ(response->Find("x-fields"), "1 2");
  EXPECT_EQ(response->content_length(), 11U);
  EXPECT_THAT(response->ReadAll(), IsOkAndHolds(std::string("GET /a?b []")));
  EXPECT_THAT(response->ReadAll(), IsOkAndHolds(std::string()));
}

BOBBIN_IO_TEST(HttpClientTest, AHostMayBeAName) {
  Server server({}, ListenHere(), [](Request& request) {
    return Response{.body = std::string(request.Find("Host").value_or(""))};
  });
  Client client;
  const std::string authority = "localhost:" + std::to_string(server.local_address().port());
  EXPECT_THAT(Fetch(client, {.url = "http://" + authority}), IsOkAndHolds(authority));
}

BOBBIN_IO_TEST(HttpClientTest, ItSendsBodies) {
  Server server({}, ListenHere(), Mirror);
  Client client;
  const std::string url = Url(server.local_address());
  EXPECT_THAT(Fetch(client, {.method = "POST", .url = url, .body = "text"}),
              IsOkAndHolds(std::string("POST / [text]")));
  EXPECT_THAT(Fetch(client, {.method = "POST", .url = url}),
              IsOkAndHolds(std::string("POST / []")));
  const auto stream = [](BodyWriter& body) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(body.Write("in "));
    return body.Write("pieces");
  };
  EXPECT_THAT(Fetch(client, {.method = "PUT", .url = url, .stream = stream}),
              IsOkAndHolds(std::string("PUT / [in pieces]")));
  EXPECT_THAT(Fetch(client, {.method = "PUT", .url = url, .stream = stream, .stream_bytes = 9}),
              IsOkAndHolds(std::string("PUT / [in pieces]")));
  EXPECT_THAT(client.Send({.method = "PUT", .url = url, .stream = stream, .stream_bytes = 8}),
              StatusIs(kOutOfRange));
}

BOBBIN_IO_TEST(HttpClientTest, AHeadResponseHasALengthAndNoBody) {
  Server server({}, ListenHere(), Mirror);
  Client client;
  for (int i = 0; i < 2; ++i) {
    auto response = client.Send({.method = "HEAD", .url = Url(server.local_address())});
    ASSERT_OK(response);
    EXPECT_EQ(response->content_length(), 9U);
    EXPECT_THAT(response->ReadAll(), IsOkAndHolds(std::string()));
  }
  EXPECT_EQ(client.Statistics().connected, 1U);
}

BOBBIN_IO_TEST(HttpClientTest, ALargeBodyStreams) {
  std::string body;
  for (size_t i = 0; i < 1'000'000; ++i) body += static_cast<char>(PatternAt(i));
  Server server({}, ListenHere(), [&](Request&) {
    return Response{.stream = [&](BodyWriter& out) -> absl::Status {
      for (size_t at = 0; at < body.size(); at += 12'345) {
        BOBBIN_RETURN_IF_ERROR(out.Write(std::string_view(body).substr(at, 12'345)));
      }
      return absl::OkStatus();
    }};
  });
  Client client;
  EXPECT_THAT(Fetch(client, {.url = Url(server.local_address())}), IsOkAndHolds(body));
  EXPECT_EQ(client.Statistics().kept, 1U);
}

// --- Connections

BOBBIN_IO_TEST(HttpClientTest, AConnectionIsUsedAgainOnceAResponseWasRead) {
  Server server({}, ListenHere(), Mirror);
  Client client;
  for (int i = 0; i < 10; ++i) EXPECT_OK(Fetch(client, {.url = Url(server.local_address())}));
  EXPECT_EQ(server.Statistics().connections.accepted, 1U);
  EXPECT_EQ(client.Statistics().reused, 9U);
  // Dropped before its end: nobody knows where the next response would begin.
  {
    auto unread = client.Get(Url(server.local_address()));
    ASSERT_OK(unread);
    EXPECT_EQ(client.Statistics().connections, 1U);
    EXPECT_EQ(client.Statistics().kept, 0U);
  }
  EXPECT_EQ(client.Statistics().connections, 0U);
  EXPECT_OK(Fetch(client, {.url = Url(server.local_address())}));
  EXPECT_EQ(server.Statistics().connections.accepted, 2U);
}

BOBBIN_IO_TEST(HttpClientTest, AtTheLimitOfAnOriginOneWaitsForAConnection) {
  std::atomic<int> live{0};
  std::atomic<int> most{0};
  Server server({}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    const int now = ++live;
    int before = most;
    while (now > before && !most.compare_exchange_weak(before, now)) continue;
    Yield();
    --live;
    return Mirror(request);
  });
  Client client({.connections_per_origin_max = 3});
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < Rounds(200); ++i) {
    group.Spawn([&] { EXPECT_OK(Fetch(client, {.url = Url(server.local_address())})); });
  }
  EXPECT_OK(group.Wait());
  EXPECT_LE(most, 3);
  EXPECT_LE(client.Statistics().connected, 3U);

  auto first = client.Get(Url(server.local_address()));
  auto second = client.Get(Url(server.local_address()));
  auto third = client.Get(Url(server.local_address()));
  ASSERT_OK(third);
  const DeadlineScope scope(milliseconds(5));
  EXPECT_THAT(client.Get(Url(server.local_address())), StatusIs(kDeadlineExceeded));
}

// Answers one request of a connection, and ends it without an answer to the second.
absl::Status AnswerOnce(io::ServerConnection& connection) {
  ReadUntil(connection.stream(), "\r\n\r\n");
  BOBBIN_RETURN_IF_ERROR(
      connection.stream().WriteAll(Bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")));
  ReadUntil(connection.stream(), "\r\n\r\n");
  return connection.stream().ShutdownWrite();
}

BOBBIN_IO_TEST(HttpClientTest, WhatMayBeRepeatedIsIfAKeptConnectionEndsUnderIt) {
  io::Server server({}, ListenHere(), AnswerOnce);
  Client client;
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Fetch(client, {.url = Url(server.local_address())}),
                IsOkAndHolds(std::string("ok")));
    EXPECT_EQ(client.Statistics().kept, 1U);
  }
  EXPECT_EQ(client.Statistics().repeated, 4U);
  // Whether the server has acted on it nobody knows.
  EXPECT_THAT(
      client.Send({.method = "POST", .url = Url(server.local_address()), .body = "\r\n\r\n"}),
      StatusIs(kUnavailable));
  EXPECT_EQ(client.Statistics().repeated, 4U);
}

BOBBIN_IO_TEST(HttpClientTest, AKeptConnectionThatHasEndedIsNotUsed) {
  Script server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1);
  Client client;
  EXPECT_OK(Fetch(client, {.url = Url(server.address())}));
  // The end is on its way; a request that meets it on the way fails.
  AwaitTrue([&] {
    return Fetch(client, {.method = "POST", .url = Url(server.address()), .body = "x"}).ok();
  });
  EXPECT_EQ(client.Statistics().repeated, 0U);
}

BOBBIN_IO_TEST(HttpClientTest, NothingIsRepeatedOnceAByteHasCome) {
  Script server("HTTP/1.1 20", 1);
  Client client;
  EXPECT_THAT(client.Get(Url(server.address())), StatusIs(kUnavailable));
  EXPECT_EQ(server.asked(), 1);
}

BOBBIN_IO_TEST(HttpClientTest, WhatIsKeptForTooLongIsNotUsed) {
  Server server({}, ListenHere(), Mirror);
  Client client({.idle_duration = std::chrono::nanoseconds(0)});
  for (int i = 0; i < 3; ++i) EXPECT_OK(Fetch(client, {.url = Url(server.local_address())}));
  EXPECT_EQ(client.Statistics().reused, 0U);
  EXPECT_EQ(client.Statistics().connected, 3U);
}

BOBBIN_IO_TEST(HttpClientTest, AResponseMayOutliveTheClient) {
  Server server({}, ListenHere(), Mirror);
  auto client = std::make_unique<Client>();
  auto response = client->Get(Url(server.local_address()));
  ASSERT_OK(response);
  client.reset();
  EXPECT_THAT(response->ReadAll(), IsOkAndHolds(std::string("GET / []")));
}

// --- Redirects, and 100 Continue

BOBBIN_IO_TEST(HttpClientTest, RedirectsAreFollowedAsFarAsIsWished) {
  Router router;
  for (const auto& [path, status, location] :
       {std::tuple("/1", 301, "/2"), std::tuple("/2", 302, "dir/3?q"),
        std::tuple("/dir/3", 307, "?r"), std::tuple("/see", 303, "/mirror"),
        std::tuple("/keep", 308, "/mirror"), std::tuple("/loop", 302, "/loop")}) {
    router.Handle(path, [status = status, location = location](Request& request) {
      if (request.query() == "r") return Response{.body = "arrived"};
      return Response{.status = status, .fields = {{"Location", location}}, .body = "moved"};
    });
  }
  router.Handle("/mirror", Mirror);
  Server server({}, ListenHere(), std::move(router));
  Client client;
  const auto fetch = [&](std::string_view target, int redirects_max, std::string method = "GET") {
    return Fetch(client, {.method = method,
                          .url = Url(server.local_address(), target),
                          .body = method == "POST" ? "body" : "",
                          .redirects_max = redirects_max});
  };
  EXPECT_THAT(fetch("/1", 0), IsOkAndHolds(std::string("moved")));
  EXPECT_THAT(fetch("/1", 3), IsOkAndHolds(std::string("arrived")));
  EXPECT_THAT(fetch("/1", 2), StatusIs(kFailedPrecondition));
  EXPECT_THAT(fetch("/loop", 10), StatusIs(kFailedPrecondition));
  EXPECT_THAT(fetch("/see", 1, "POST"), IsOkAndHolds(std::string("GET /mirror []")));
  EXPECT_THAT(fetch("/keep", 1, "POST"), IsOkAndHolds(std::string("POST /mirror [body]")));
  EXPECT_EQ(client.Statistics().connected, 1U);
}

BOBBIN_IO_TEST(HttpClientTest, SecretsDoNotFollowARedirectToAnotherOrigin) {
  const auto look = [](Request& request) {
    return Response{.body = std::string(request.Find("Authorization").value_or("none"))};
  };
  Server other({}, ListenHere(), look);
  Router router;
  router.Handle("/here", look);
  router.Handle("/away", [&](Request&) {
    return Response{.status = 302, .fields = {{"Location", Url(other.local_address())}}};
  });
  router.Handle("/stay", [&](Request&) {
    return Response{.status = 302, .fields = {{"Location", "/here"}}};
  });
  Server server({}, ListenHere(), std::move(router));
  Client client;
  const auto fetch = [&](std::string_view target) {
    return Fetch(client, {.url = Url(server.local_address(), target),
                          .fields = {{"Authorization", "secret"}},
                          .redirects_max = 1});
  };
  EXPECT_THAT(fetch("/stay"), IsOkAndHolds(std::string("secret")));
  EXPECT_THAT(fetch("/away"), IsOkAndHolds(std::string("none")));
}

BOBBIN_IO_TEST(HttpClientTest, ABodyIsHeldBackUntilItIsWanted) {
  std::atomic<int> streamed{0};
  const auto stream = [&](BodyWriter& body) {
    ++streamed;
    return body.Write("body");
  };
  Server server({}, ListenHere(), [](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/no") return Response{.status = 403, .body = "no"};
    return Mirror(request);
  });
  Client client({.continue_duration = hours(1)});
  const auto put = [&](const io::SocketAddress& address, std::string_view target) {
    return Fetch(
        client,
        {.method = "PUT", .url = Url(address, target), .stream = stream, .expects_continue = true});
  };
  EXPECT_THAT(put(server.local_address(), "/no"), IsOkAndHolds(std::string("no")));
  EXPECT_EQ(streamed, 0);
  EXPECT_THAT(put(server.local_address(), "/"), IsOkAndHolds(std::string("PUT / [body]")));
  EXPECT_EQ(streamed, 1);
}

BOBBIN_IO_TEST(HttpClientTest, AServerThatDoesNotAskGetsTheBodyInTheEnd) {
  io::Server server({}, ListenHere(), [](io::ServerConnection& connection) -> absl::Status {
    ReadUntil(connection.stream(), "\r\n\r\n");
    EXPECT_EQ(ReadText(connection.stream(), 4), "body");
    return connection.stream().WriteAll(Bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  });
  Client client({.continue_duration = milliseconds(5)});
  EXPECT_OK(client.Send({.method = "PUT",
                         .url = Url(server.local_address()),
                         .body = "body",
                         .expects_continue = true}));
}

// --- Responses that are not as they should be

BOBBIN_IO_TEST(HttpClientTest, ResponsesAreReadAsStrictlyAsRequests) {
  const struct {
    std::string_view what;
    std::string answer;
    absl::StatusCode code;
    std::string body;
  } cases[] = {
      {"to the end", "HTTP/1.1 200 OK\r\n\r\nall of it", kOk, "all of it"},
      {"old", "HTTP/1.0 200 OK\r\n\r\nall of it", kOk, "all of it"},
      {"no reason", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", kOk, "x"},
      {"interim", "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
       kOk, "x"},
      {"no content", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", kOk, ""},
      {"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", kOk,
       "x"},
      {"nothing", "", kUnavailable, ""},
      {"half a header", "HTTP/1.1 200 OK\r\n", kUnavailable, ""},
      {"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx", kUnavailable, ""},
      {"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx", kUnavailable,
       ""},
      {"no version", "200 OK\r\n\r\n", kInternal, ""},
      {"another version", "HTTP/2.0 200 OK\r\n\r\n", kInternal, ""},
      {"no status", "HTTP/1.1 OK\r\n\r\n", kInternal, ""},
      {"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", kInternal, ""},
      {"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", kInternal, ""},
      {"an interim status below 100", "HTTP/1.1 099 No\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", kInternal,
       ""},
      {"status 0", "HTTP/1.1 000 No\r\n\r\n", kInternal, ""},
      {"bare LF", "HTTP/1.1 200 OK\n\nx", kInternal, ""},
      {"both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
       kInternal, ""},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
       kInternal, ""},
      {"gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", kInternal, ""},
      {"malformed chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", kInternal,
       ""},
      {"large header", "HTTP/1.1 200 OK\r\nA: " + std::string(1000, 'a') + "\r\n\r\n",
       kResourceExhausted, ""},
      {"large body", "HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'b'), kResourceExhausted, ""},
      {"large length", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'b'),
       kResourceExhausted, ""},
      {"endless interim",
       [] {
         std::string all;
         for (int i = 0; i < 100; ++i) all += "HTTP/1.1 102 Wait\r\n\r\n";
         return all;
       }(),
       kInternal, ""},
  };
  for (const auto& each : cases) {
    Script server(each.answer, 1);
    Client client({.header_bytes_max = 900, .body_bytes_max = 1000});
    const auto body = Fetch(client, {.url = Url(server.address())});
    ASSERT_EQ(body.status().code(), each.code) << each.what << ": " << body.status().ToString();
    if (body.ok()) {
      EXPECT_EQ(*body, each.body) << each.what;
    }
  }
}

BOBBIN_IO_TEST(HttpClientTest, AStatusThatIsNoneIsNamed) {
  Script server("HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n");
  Client client;
  const auto body = Fetch(client, {.url = Url(server.address())});
  EXPECT_THAT(body, StatusIs(kInternal));
  EXPECT_THAT(body.status().message(), HasSubstr("a status below 100"));
  EXPECT_EQ(client.Statistics().kept, 0U);
}

BOBBIN_IO_TEST(HttpClientTest, BytesBeyondAResponseAreNotTheNextOne) {
  Script server("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\nsmuggled");
  Client client;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Fetch(client, {.url = Url(server.address())}), IsOkAndHolds(std::string("x")));
    EXPECT_EQ(client.Statistics().kept, 0U);
  }
}

BOBBIN_IO_TEST(HttpClientTest, AnAnswerBeforeTheWholeRequestCounts) {
  Server server({.body_bytes_max = 1000}, ListenHere(), Mirror);
  Client client;
  auto response = client.Send(
      {.method = "POST", .url = Url(server.local_address()), .body = std::string(200'000, 'x')});
  ASSERT_OK(response);
  EXPECT_EQ(response->status(), 413);
}

// --- What cannot be sent

BOBBIN_IO_TEST(HttpClientTest, WhatCannotBeSentIsRefused) {
  Client client;
  for (const std::string_view url :
       {"", "/", "127.0.0.1", "http://", "http://:80/", "http://a:0/", "http://a:65536/",
        "http://a:b/", "http://a b/", "http://[::1/", "http://user@127.0.0.1/",
        "http://127.0.0.1/\r\nA: b"}) {
    EXPECT_THAT(client.Get(url), StatusIs(kInvalidArgument)) << url;
  }
  EXPECT_THAT(client.Get("ftp://127.0.0.1/"), StatusIs(kUnimplemented));
  EXPECT_THAT(client.Get("https://127.0.0.1/"), StatusIs(kFailedPrecondition));
  const auto send = [&](std::string method, io::http::Field field) {
    return client.Send({.method = method, .url = "http://127.0.0.1/", .fields = {field}});
  };
  EXPECT_THAT(send("G T", {"A", "b"}), StatusIs(kInvalidArgument));
  EXPECT_THAT(send("GET", {"A:", "b"}), StatusIs(kInvalidArgument));
  EXPECT_THAT(send("GET", {"A", "b\r\nC: d"}), StatusIs(kInvalidArgument));
  EXPECT_THAT(send("GET", {"content-length", "1"}), StatusIs(kInvalidArgument));
  EXPECT_THAT(send("GET", {"Transfer-Encoding", "chunked"}), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(HttpClientTest, ADeadlineEndsEveryPartOfAnExchange) {
  Event never;
  Server server({}, ListenHere(), [&](Request& request) -> absl::StatusOr<Response> {
    if (request.target() == "/late") BOBBIN_RETURN_IF_ERROR(never.Wait());
    return Response{.stream = [&](BodyWriter& out) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(out.Write("begun"));
      BOBBIN_RETURN_IF_ERROR(out.Flush());
      return never.Wait();
    }};
  });
  Client client;
  {
    const DeadlineScope scope(milliseconds(10));
    EXPECT_THAT(client.Get(Url(server.local_address(), "/late")), StatusIs(kDeadlineExceeded));
  }
  auto response = client.Get(Url(server.local_address()));
  ASSERT_OK(response);
  const DeadlineScope scope(milliseconds(10));
  EXPECT_THAT(response->ReadAll(), StatusIs(kDeadlineExceeded));
}

BOBBIN_IO_FOREIGN_TEST(HttpClientTest, AForeignThreadBlocks) {
  VirtualThread serving;
  io::SocketAddress address;
  Event is_ready;
  Event is_done;
  serving = runtime().Spawn([&] {
    Server server({}, ListenHere(), Mirror);
    address = server.local_address();
    is_ready.Set();
    EXPECT_OK(is_done.Wait());
  });
  ASSERT_OK(is_ready.Wait());
  Client client;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Fetch(client, {.url = Url(address)}), IsOkAndHolds(std::string("GET / []")));
  }
  is_done.Set();
  EXPECT_OK(serving.Join());
}

}  // namespace
}  // namespace bobbin::test
