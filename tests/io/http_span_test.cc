// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/http/router.h>
#include <bobbin/io/http/server.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/tasks.h>
#include <bobbin/sched/trace_context.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"
#include "tests/support/kept_lines.h"
#include "tests/support/kept_spans.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using io::http::BodyWriter;
using io::http::Client;
using io::http::Request;
using io::http::Response;
using io::http::Router;
using io::http::Server;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string Url(const Server& server, std::string_view target) {
  return "http://" + server.local_address().ToString() + std::string(target);
}

std::string Get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: shop.example:81\r\n" +
         std::string(fields) + "\r\n";
}

BOBBIN_IO_TEST(HttpSpanTest, ARequestHasOneUnderItsCallers) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Router router;
  router.Handle("GET /orders/", [](Request& request) {
    EXPECT_EQ(request.route(), "/orders/");
    { const Span inner({.name = "look up"}); }
    EXPECT_OK(Tasks::Virtual({.name = "later"}, [] {}));
    return Response{.body = "7\n"};
  });
  {
    Server server({}, ListenHere(), std::move(router));
    EXPECT_THAT(
        Ask(server.local_address(),
            Get("/orders/7?token=secret", "User-Agent: curl/8\r\nTracestate: a=1\r\nTraceParent: " +
                                              std::string(kParent) + "\r\ntracestate: b=2\r\n")),
        HasSubstr("7\n"));
  }
  ASSERT_OK(CurrentExecutors().AwaitIdle());
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(3));
  const SpanRecord request = SpanNamed(spans, "GET /orders/");
  EXPECT_EQ(request.kind, SpanKind::kServer);
  EXPECT_EQ(request.context.trace_id.ToString(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(request.parent.ToString(), "b7ad6b7169203331");
  EXPECT_EQ(request.context.trace_state, "a=1,b=2");
  EXPECT_EQ(SaidOf(request, "http.request.method"), "GET");
  EXPECT_EQ(SaidOf(request, "http.route"), "/orders/");
  EXPECT_EQ(SaidOf(request, "http.response.status_code"), "200");
  EXPECT_EQ(SaidOf(request, "url.scheme"), "http");
  EXPECT_EQ(SaidOf(request, "url.path"), "/orders/7");
  EXPECT_EQ(SaidOf(request, "server.address"), "shop.example");
  EXPECT_EQ(SaidOf(request, "server.port"), "81");
  EXPECT_EQ(SaidOf(request, "client.address"), "127.0.0.1");
  EXPECT_EQ(SaidOf(request, "user_agent.original"), "curl/8");
  EXPECT_EQ(SaidOf(request, "network.protocol.version"), "1.1");
  EXPECT_TRUE(request.status.ok());
  for (const Attribute& attribute : request.attributes) {
    EXPECT_THAT(attribute.value.ToString(), testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(SpanNamed(spans, "look up").parent, request.context.span_id);
  EXPECT_EQ(SpanNamed(spans, "later").parent, request.context.span_id);
}

BOBBIN_IO_TEST(HttpSpanTest, EachRequestHasItsOwnTraceAndItsOutcome) {
  const KeptLines lines;
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Router router;
  router.Handle("/fails", [](Request&) { return absl::InternalError("broken"); });
  router.Handle("/throws",
                [](Request&) -> absl::StatusOr<Response> { throw std::runtime_error("torn"); });
  router.Handle("/cut", [](Request&) {
    return Response{.stream = [](BodyWriter& body) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(body.Write("half"));
      return absl::DataLossError("no more");
    }};
  });
  std::string answers;
  {
    Server server({}, ListenHere(), std::move(router));
    answers =
        Ask(server.local_address(), Get("/nobody") + Get("/fails") + Get("/throws", "") +
                                        "BREW /fails HTTP/1.1\r\nHost: a\r\n\r\n" + Get("/cut"));
    // What is no request has none.
    EXPECT_THAT(Ask(server.local_address(), "GET\r\n\r\n"), HasSubstr("400"));
  }
  EXPECT_THAT(answers, HasSubstr("404"));
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(5));
  EXPECT_EQ(spans[0].name, "GET");
  EXPECT_EQ(SaidOf(spans[0], "http.response.status_code"), "404");
  EXPECT_TRUE(spans[0].status.ok());
  EXPECT_EQ(spans[1].name, "GET /fails");
  EXPECT_EQ(SaidOf(spans[1], "error.type"), "500");
  EXPECT_FALSE(spans[1].status.ok());
  EXPECT_EQ(spans[2].name, "GET /throws");
  EXPECT_EQ(SaidOf(spans[2], "http.response.status_code"), "500");
  EXPECT_FALSE(spans[2].status.ok());
  EXPECT_EQ(spans[3].name, "HTTP /fails");
  EXPECT_EQ(SaidOf(spans[3], "http.request.method"), "_OTHER");
  EXPECT_EQ(SaidOf(spans[3], "http.request.method_original"), "BREW");
  EXPECT_EQ(spans[4].name, "GET /cut");
  EXPECT_EQ(SaidOf(spans[4], "error.type"), "DATA_LOSS");
  const std::vector<LogRecord> fails = lines.With("the handler of GET /fails failed: broken");
  ASSERT_THAT(fails, SizeIs(1));
  EXPECT_EQ(fails[0].span.trace_id, spans[1].context.trace_id);
  EXPECT_THAT(lines.With("the handler of GET /throws threw: "), SizeIs(1));
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_FALSE(spans[i].parent.is_set());
    EXPECT_NE(spans[i].context.trace_id, spans[i - 1].context.trace_id);
  }
}

BOBBIN_IO_TEST(HttpSpanTest, AHandlerThatIsCancelledEndsItsSpan) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Event has_begun;
  {
    Server server({}, ListenHere(), [&](Request&) -> absl::StatusOr<Response> {
      has_begun.Set();
      Event never;
      return never.Wait();
    });
    VirtualThread peer = Spawn([&] { Ask(server.local_address(), Get("/")); });
    ASSERT_OK(has_begun.Wait());
    server.Drain({.grace = milliseconds(0)});
    ASSERT_OK(peer.Join());
  }
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_FALSE(spans[0].status.ok());
}

BOBBIN_IO_TEST(HttpSpanTest, AClientTellsTheServerOfItsOwn) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Router router;
  router.Handle("/there", [](Request&) { return Response{.status = 404}; });
  router.Handle("/moved", [](Request&) {
    return Response{.status = 302, .fields = {{"Location", "/there?key=secret"}}};
  });
  std::string port;
  {
    Server server({}, ListenHere(), std::move(router));
    port = std::to_string(server.local_address().port());
    Client client;
    const Span mine({.name = "mine"});
    ASSERT_OK(client.Send({.url = Url(server, "/moved?key=secret"), .redirects_max = 1}));
  }
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(5));
  std::vector<SpanRecord> clients;
  std::vector<SpanRecord> servers;
  for (const SpanRecord& span : spans) {
    if (span.kind == SpanKind::kClient) clients.push_back(span);
    if (span.kind == SpanKind::kServer) servers.push_back(span);
  }
  ASSERT_THAT(clients, SizeIs(2));
  ASSERT_THAT(servers, SizeIs(2));
  const SpanRecord mine = SpanNamed(spans, "mine");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(clients[i].name, "GET");
    EXPECT_EQ(clients[i].parent, mine.context.span_id);
    EXPECT_EQ(SaidOf(clients[i], "server.address"), "127.0.0.1");
    EXPECT_EQ(SaidOf(clients[i], "server.port"), port);
    EXPECT_EQ(SaidOf(clients[i], "url.full"),
              "http://127.0.0.1:" + port + (i == 0 ? "/moved" : "/there"));
    // Which of a request's two spans ends first is not said.
    const SpanRecord& other = servers[servers[0].parent == clients[i].context.span_id ? 0 : 1];
    EXPECT_EQ(other.parent, clients[i].context.span_id);
    EXPECT_EQ(other.context.trace_id, mine.context.trace_id);
  }
  EXPECT_EQ(SaidOf(clients[0], "http.response.status_code"), "302");
  EXPECT_TRUE(clients[0].status.ok());
  EXPECT_EQ(SaidOf(clients[1], "http.request.resend_count"), "1");
  EXPECT_EQ(SaidOf(clients[1], "error.type"), "404");
  EXPECT_FALSE(clients[1].status.ok());
}

BOBBIN_IO_TEST(HttpSpanTest, ARequestThatFailsSaysWhy) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  std::string url;
  {
    Server server({}, ListenHere(), Router());
    url = Url(server, "/");
  }
  Client client;
  EXPECT_THAT(client.Get(url), StatusIs(kUnavailable));
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(SaidOf(spans[0], "error.type"), "UNAVAILABLE");
  EXPECT_THAT(spans[0].status, StatusIs(kUnavailable));
}

// What comes in goes out, whether or not anything is kept here.
void ExpectPassedOn(const std::vector<std::string_view>& told) {
  std::vector<std::string> seen;
  const auto look = [&seen](Request& request) {
    seen.push_back(std::string(request.Find("traceparent").value_or("nothing")) + " " +
                   std::string(request.Find("tracestate").value_or("nothing")));
    return Response{};
  };
  {
    Server inner({}, ListenHere(), look);
    Client client;
    Server outer({}, ListenHere(), [&](Request&) -> absl::StatusOr<Response> {
      BOBBIN_RETURN_IF_ERROR(client.Get(Url(inner, "/")).status());
      return Response{};
    });
    for (const std::string_view parent : told) {
      const std::string fields =
          parent.empty() ? "" : "traceparent: " + std::string(parent) + "\r\ntracestate: a=1\r\n";
      EXPECT_THAT(Ask(outer.local_address(), Get("/", fields)), HasSubstr("200"));
    }
  }
  ASSERT_THAT(seen, SizeIs(told.size()));
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(seen[i], told[i].empty() ? "nothing nothing" : std::string(told[i]) + " a=1");
  }
}

BOBBIN_IO_TEST(HttpSpanTest, WithoutTracingATraceIsPassedOnAsItCame) {
  ExpectPassedOn({kParent, ""});
}

BOBBIN_IO_TEST(HttpSpanTest, ATraceThatIsNotKeptIsPassedOnAsItCame) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  ExpectPassedOn({"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"});
  EXPECT_THAT(kept->Take(), IsEmpty());
}

BOBBIN_IO_TEST(HttpSpanTest, WhatTheProgramSaysItselfStays) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  std::string seen;
  {
    Server server({}, ListenHere(), [&](Request& request) {
      for (const auto& field : request.fields()) {
        if (field.name == "traceparent") seen += field.value;
      }
      return Response{};
    });
    Client client;
    ASSERT_OK(
        client.Send({.url = Url(server, "/"), .fields = {{"traceparent", std::string(kParent)}}}));
  }
  EXPECT_EQ(seen, kParent);
}

}  // namespace
}  // namespace bobbin::test
