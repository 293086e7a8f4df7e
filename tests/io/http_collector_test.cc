// SPDX-License-Identifier: Apache-2.0
//
// Spans, sent to a collector that is a server of ours.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/io/http/collector.h>
#include <bobbin/io/http/server.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"
#include "tests/io/tls_test.h"

namespace bobbin::test {
namespace {

using io::http::PostTo;
using io::http::Request;
using io::http::Response;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Answers with each of `statuses`, the last one for ever, and keeps what it was sent.
class Collector {
 public:
  explicit Collector(std::vector<int> statuses, io::TlsServerContext tls = {})
      : statuses_(std::move(statuses)),
        scheme_(tls ? "https" : "http"),
        server_({.tls = std::move(tls)}, ListenHere(),
                [this](Request& request) { return Answer(request); }) {}

  std::string Url() const {
    return scheme_ + "://" + server_.local_address().ToString() + "/v1/traces";
  }
  std::vector<nlohmann::json> bodies() {
    MutexLock lock(mutex_);
    return bodies_;
  }
  uint64_t connections() const { return server_.Statistics().connections.accepted; }

 private:
  absl::StatusOr<Response> Answer(Request& request) {
    EXPECT_EQ(request.method(), "POST");
    EXPECT_EQ(request.target(), "/v1/traces");
    EXPECT_EQ(request.Find("Content-Type"), "application/json");
    EXPECT_EQ(request.Find("Authorization"), "Bearer x");
    BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
    MutexLock lock(mutex_);
    const int status = statuses_.at(std::min(bodies_.size(), statuses_.size() - 1));
    bodies_.push_back(nlohmann::json::parse(body));
    return Response{.status = status, .body = "{\"partialSuccess\":{}}"};
  }

  const std::vector<int> statuses_;
  const std::string scheme_;
  Mutex mutex_;
  std::vector<nlohmann::json> bodies_ ABSL_GUARDED_BY(mutex_);
  io::http::Server server_;  // Last: its threads use the others.
};

std::shared_ptr<OtlpSpans> SpansFor(const std::string& url, io::TlsClientContext tls = {}) {
  return OtlpSpans::Make(
      {.send =
           PostTo({.url = url, .fields = {{"Authorization", "Bearer x"}}, .tls = std::move(tls)}),
       .service_name = "shop",
       .interval = hours(1),
       .attempts_max = 3,
       .first_pause = milliseconds(1)});
}

BOBBIN_IO_TEST(HttpCollectorTest, ATraceArrivesAsItWas) {
  Collector collector({200});
  const auto spans = SpansFor(collector.Url());
  {
    const Tracing tracing({.sink = spans});
    Span request({.name = "request", .kind = SpanKind::kServer});
    TaskGroup group;
    for (int i = 0; i < 3; ++i) {
      group.Spawn([i] { const Span child({.name = "child", .attributes = {{"i", i}}}); });
    }
    ASSERT_OK(group.Wait());
    request.SetStatus(absl::NotFoundError("gone"));
  }
  ASSERT_OK(spans->Flush());
  ASSERT_THAT(collector.bodies(), SizeIs(1));
  const nlohmann::json body = collector.bodies()[0];
  const nlohmann::json& resource = body["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "shop");
  const nlohmann::json& sent = resource["scopeSpans"][0]["spans"];
  ASSERT_THAT(sent, SizeIs(4));
  const nlohmann::json& request = sent[3];
  EXPECT_EQ(request["name"], "request");
  EXPECT_EQ(request["kind"], 2);
  EXPECT_EQ(request["status"]["code"], 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[static_cast<size_t>(i)]["traceId"], request["traceId"]);
    EXPECT_EQ(sent[static_cast<size_t>(i)]["parentSpanId"], request["spanId"]);
  }
}

BOBBIN_IO_TEST(HttpCollectorTest, WhatMayPassIsSentAgainOnTheSameConnection) {
  Collector collector({503, 429, 200});
  const auto spans = SpansFor(collector.Url());
  spans->Add(SpanRecord());
  ASSERT_OK(spans->Flush());
  ASSERT_THAT(collector.bodies(), SizeIs(3));
  EXPECT_EQ(collector.bodies()[0], collector.bodies()[2]);
  EXPECT_EQ(spans->Statistics().written, 1u);
  EXPECT_EQ(collector.connections(), 1u);
}

BOBBIN_IO_TEST(HttpCollectorTest, WhatWillNotPassIsGivenUp) {
  Collector collector({400});
  const auto spans = SpansFor(collector.Url());
  spans->Add(SpanRecord());
  ASSERT_OK(spans->Flush());
  EXPECT_THAT(collector.bodies(), SizeIs(1));
  EXPECT_EQ(spans->Statistics().failed, 1u);
}

BOBBIN_IO_TEST(HttpCollectorTest, WithoutACollectorSpansAreGivenUpAndCounted) {
  std::string url;
  {
    const Collector gone({200});
    url = gone.Url();
  }
  const auto spans = SpansFor(url);
  spans->Add(SpanRecord());
  ASSERT_OK(spans->Flush());
  EXPECT_EQ(spans->Statistics().failed, 1u);
}

// --- Over TLS

BOBBIN_IO_TEST(HttpCollectorTest, OverTlsBatchesShareAConnectionToo) {
  const io::TlsServerContext tls = ServerContext();
  Collector collector({503, 200}, tls);
  const auto spans = SpansFor(collector.Url(), ClientContext());
  for (int i = 0; i < 3; ++i) {
    spans->Add(SpanRecord());
    ASSERT_OK(spans->Flush());
  }
  EXPECT_THAT(collector.bodies(), SizeIs(4));
  EXPECT_EQ(spans->Statistics().written, 3u);
  EXPECT_EQ(collector.connections(), 1u);
  EXPECT_EQ(tls.Statistics().handshakes, 1u);
}

BOBBIN_IO_TEST(HttpCollectorTest, ACollectorMayAskWhoSendsThem) {
  const io::TlsServerContext tls =
      ServerContext({.client_certificates = io::ClientCertificates::kRequired,
                     .client_roots_pem = TestAuthority::Default().root_pem()});
  Collector collector({200}, tls);
  const auto named =
      SpansFor(collector.Url(), ClientContext({.certificate = TestAuthority::Default().Issue()}));
  named->Add(SpanRecord());
  ASSERT_OK(named->Flush());
  EXPECT_EQ(named->Statistics().written, 1u);

  const auto nameless = SpansFor(collector.Url(), ClientContext());
  nameless->Add(SpanRecord());
  ASSERT_OK(nameless->Flush());
  EXPECT_EQ(nameless->Statistics().failed, 1u);
  EXPECT_THAT(collector.bodies(), SizeIs(1));
}

BOBBIN_IO_TEST(HttpCollectorTest, WhoIsNotTheCollectorGetsNothing) {
  Collector collector({200}, ServerContext());
  const TestAuthority other("another authority");
  const auto tls = ClientContext({.roots_pem = other.root_pem()});
  const absl::Status posted = PostTo({.url = collector.Url(), .tls = tls})("{}");
  EXPECT_THAT(posted, StatusIs(kUnauthenticated));
  EXPECT_THAT(posted.message(), HasSubstr("the peer's certificate is not good"));

  const auto spans = SpansFor(collector.Url(), tls);
  spans->Add(SpanRecord());
  ASSERT_OK(spans->Flush());
  EXPECT_EQ(spans->Statistics().failed, 1u);
  // Another attempt would not make it better.
  EXPECT_EQ(collector.connections(), 2u);
  EXPECT_THAT(collector.bodies(), IsEmpty());
}

BOBBIN_IO_TEST(HttpCollectorTest, WithoutAContextThereIsNoHttps) {
  Collector collector({200}, ServerContext());
  const absl::Status posted = PostTo({.url = collector.Url()})("{}");
  EXPECT_THAT(posted, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(posted.message(), HasSubstr("no TLS context"));
  EXPECT_EQ(collector.connections(), 0u);
}

}  // namespace
}  // namespace bobbin::test
