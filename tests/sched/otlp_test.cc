// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using nlohmann::json;
using ::testing::SizeIs;

TEST(OtlpTest, TheBodyIsThatOfTheProtocol) {
  const SpanRecord span{.context = {.trace_id = {0x5b8efff798038103, 0xd269b633813fc60c},
                                    .span_id = {0xeee19b7ec3c1b174},
                                    .is_sampled = true,
                                    .trace_state = "a=1"},
                        .parent = {0xeee19b7ec3c1b173},
                        .name = "I'm a server span",
                        .kind = SpanKind::kServer,
                        .start = absl::FromUnixNanos(1544712660000000000),
                        .end = absl::FromUnixNanos(1544712661000000000),
                        .attributes = {{"text", "some value"}, {"n", 7}, {"d", 1.5}, {"b", false}},
                        .events = {{.time = absl::FromUnixNanos(1544712660500000000),
                                    .name = "e",
                                    .attributes = {{"k", "v"}}}},
                        .dropped_attributes = 1,
                        .dropped_events = 2,
                        .status = absl::InternalError("broken")};
  const SpanRecord plain{.context = {.trace_id = {1, 2}, .span_id = {3}},
                         .parent = {},
                         .name = "plain",
                         .start = absl::FromUnixNanos(1),
                         .end = absl::FromUnixNanos(2),
                         .attributes = {},
                         .events = {},
                         .status = absl::OkStatus()};
  const std::vector<Attribute> resource = {{"host.name", "h"}};
  const std::vector<SpanRecord> spans = {span, plain};
  EXPECT_EQ(json::parse(OtlpSpans::BodyOf("shop", resource, spans)), json::parse(R"({
    "resourceSpans": [{
      "resource": {"attributes": [
        {"key": "service.name", "value": {"stringValue": "shop"}},
        {"key": "host.name", "value": {"stringValue": "h"}}]},
      "scopeSpans": [{
        "scope": {"name": "bobbin"},
        "spans": [{
          "traceId": "5b8efff798038103d269b633813fc60c",
          "spanId": "eee19b7ec3c1b174",
          "parentSpanId": "eee19b7ec3c1b173",
          "traceState": "a=1",
          "name": "I'm a server span",
          "kind": 2,
          "startTimeUnixNano": "1544712660000000000",
          "endTimeUnixNano": "1544712661000000000",
          "attributes": [
            {"key": "text", "value": {"stringValue": "some value"}},
            {"key": "n", "value": {"intValue": "7"}},
            {"key": "d", "value": {"doubleValue": 1.5}},
            {"key": "b", "value": {"boolValue": false}}],
          "droppedAttributesCount": 1,
          "events": [{"timeUnixNano": "1544712660500000000", "name": "e",
                      "attributes": [{"key": "k", "value": {"stringValue": "v"}}]}],
          "droppedEventsCount": 2,
          "status": {"message": "INTERNAL: broken", "code": 2}
        }, {
          "traceId": "00000000000000010000000000000002",
          "spanId": "0000000000000003",
          "name": "plain",
          "kind": 1,
          "startTimeUnixNano": "1",
          "endTimeUnixNano": "2",
          "attributes": [],
          "events": [],
          "status": {}
        }]
      }]
    }]})"));
}

// A collector that answers what it is told, the last answer for ever.
class Collector {
 public:
  explicit Collector(std::vector<absl::Status> answers) : answers_(std::move(answers)) {}

  auto Send() {
    return [this](std::string_view body) {
      MutexLock lock(mutex_);
      const absl::Status answer = answers_.at(std::min(bodies_.size(), answers_.size() - 1));
      bodies_.emplace_back(body);
      return answer;
    };
  }
  std::vector<std::string> bodies() {
    MutexLock lock(mutex_);
    return bodies_;
  }
  size_t SpansIn(size_t body) {
    return json::parse(bodies().at(body))["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
  }

 private:
  Mutex mutex_;
  const std::vector<absl::Status> answers_;
  std::vector<std::string> bodies_ ABSL_GUARDED_BY(mutex_);
};

BOBBIN_TEST(OtlpTest, SpansAreSentInBatches) {
  Collector collector({absl::OkStatus()});
  const auto sink = OtlpSpans::Make({.send = collector.Send(), .batch_max = 4, .interval = 1h});
  {
    const Tracing tracing({.sink = sink});
    for (int i = 0; i < 10; ++i) const Span span({.name = "s"});
  }
  ASSERT_OK(sink->Flush());
  size_t spans = 0;
  for (size_t i = 0; i < collector.bodies().size(); ++i) {
    EXPECT_LE(collector.SpansIn(i), 4u);
    spans += collector.SpansIn(i);
  }
  EXPECT_EQ(spans, 10u);
  EXPECT_EQ(sink->Statistics().written, 10u);
}

BOBBIN_TEST(OtlpTest, WhatMayPassIsTriedAgainWithTheSameBody) {
  Collector collector(
      {absl::UnavailableError("503"), absl::ResourceExhaustedError("429"), absl::OkStatus()});
  const auto sink = OtlpSpans::Make({.send = collector.Send(), .interval = 1h, .first_pause = 1ms});
  sink->Add(SpanRecord{});
  ASSERT_OK(sink->Flush());
  EXPECT_THAT(collector.bodies(), SizeIs(3));
  EXPECT_EQ(collector.bodies()[0], collector.bodies()[2]);
  EXPECT_EQ(sink->Statistics().written, 1u);
}

BOBBIN_TEST(OtlpTest, WhatWillNotPassIsGivenUp) {
  for (const auto& [answer, attempts] :
       {std::pair<absl::Status, size_t>(absl::InvalidArgumentError("400"), 1),
        {absl::UnavailableError("503"), 3}}) {
    Collector collector({answer});
    const auto sink = OtlpSpans::Make(
        {.send = collector.Send(), .interval = 1h, .attempts_max = 3, .first_pause = 1ms});
    sink->Add(SpanRecord{});
    ASSERT_OK(sink->Flush());
    EXPECT_THAT(collector.bodies(), SizeIs(attempts));
    EXPECT_EQ(sink->Statistics().failed, 1u);
  }
}

BOBBIN_TEST(OtlpTest, AStopDoesNotSitThroughAPause) {
  Collector collector({absl::UnavailableError("503")});
  const auto sink = OtlpSpans::Make(
      {.send = collector.Send(), .interval = 1ms, .first_pause = 1h, .stop_budget = 25s});
  sink->Add(SpanRecord{});
  while (collector.bodies().empty()) Yield();
  ASSERT_OK(sink->Stop());
  EXPECT_THAT(collector.bodies(), SizeIs(2));  // One more attempt.
  EXPECT_EQ(sink->Statistics().failed, 1u);
}

BOBBIN_TEST(OtlpTest, EachAttemptHasADeadline) {
  const auto sink =
      OtlpSpans::Make({.send =
                           [](std::string_view) {
                             Event never;
                             const absl::Status waited = never.Wait();
                             EXPECT_THAT(waited, test::StatusIs(test::kDeadlineExceeded));
                             return waited;
                           },
                       .interval = 1ms,
                       .attempts_max = 2,
                       .attempt_max = 1ms,
                       .first_pause = 1ms});
  sink->Add(SpanRecord{});
  ASSERT_OK(sink->Flush());
  EXPECT_EQ(sink->Statistics().failed, 1u);
}

}  // namespace
}  // namespace bobbin
