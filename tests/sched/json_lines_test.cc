// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <bobbin/sched/json_lines.h>

#include "tests/io/temporary_directory.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using std::chrono_literals::operator""h;
using nlohmann::json;

SpanRecord Example() {
  return {.context = {.trace_id = {1, 2}, .span_id = {3}, .is_sampled = true, .trace_state = ""},
          .parent = {4},
          .name = "Größe \"x\"\n\xFF",
          .kind = SpanKind::kServer,
          .start = absl::FromUnixNanos(1'796'072'700'123'456'789),
          .end = absl::FromUnixNanos(1'796'072'700'123'457'789),
          .attributes = {{"text", "a\tb"}, {"n", -7}, {"d", 0.5}, {"b", true}, {"n", 8}},
          .events = {{.time = absl::FromUnixNanos(1'796'072'700'123'456'790),
                      .name = "e",
                      .attributes = {{"inf", std::numeric_limits<double>::infinity()}}}},
          .dropped_attributes = 2,
          .dropped_events = 0,
          .status = absl::NotFoundError("gone")};
}

TEST(JsonLinesTest, ASpanIsALine) {
  const std::string line = JsonLines::LineOf(Example());
  EXPECT_EQ(line.find('\n'), line.npos);
  const json parsed = json::parse(line);
  EXPECT_EQ(parsed, json::parse(R"({
    "type": "span", "name": "Größe \"x\"\n\u00ff",
    "trace": "00000000000000010000000000000002", "span": "0000000000000003",
    "parent": "0000000000000004", "kind": "server",
    "start": "2026-11-30T21:05:00.123456789Z", "nanoseconds": 1000,
    "ok": false, "error": "NOT_FOUND: gone",
    "attributes": {"text": "a\tb", "n": 8, "d": 0.5, "b": true},
    "events": [{"name": "e", "time": "2026-11-30T21:05:00.123456790Z",
                "attributes": {"inf": "Infinity"}}],
    "droppedAttributes": 2})"));
}

TEST(JsonLinesTest, ALogLineIsALine) {
  const LogRecord record{.time = absl::FromUnixMillis(1'796'072'700'123),
                         .level = LogLevel::kWarning,
                         .text = "low",
                         .fields = {{"order", 1}, {"order", 2}},
                         .span = {.trace_id = {0, 1}, .span_id = {2}}};
  EXPECT_EQ(json::parse(JsonLines::LineOf(record)), json::parse(R"({
    "type": "log", "time": "2026-11-30T21:05:00.123000000Z", "level": "WARNING", "text": "low",
    "trace": "00000000000000000000000000000001", "span": "0000000000000002",
    "fields": {"order": 2}})"));
}

BOBBIN_TEST(JsonLinesTest, SpansAndLogLinesComeIntoAFile) {
  const test::TemporaryDirectory folder;
  const auto lines = JsonLines::Open({.path = folder / "x.jsonl", .interval = 1h});
  ASSERT_OK(lines);
  SetLogging({.sink = *lines});
  {
    const Tracing tracing({.sink = *lines});
    const Span span({.name = "s"});
    Log(LogLevel::kInfo, "inside");
  }
  SetLogging({});
  ASSERT_OK((*lines)->Flush());

  std::ifstream file(folder / "x.jsonl");
  std::vector<json> read;
  for (std::string line; std::getline(file, line);) read.push_back(json::parse(line));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0]["text"], "inside");
  EXPECT_EQ(read[1]["name"], "s");
  EXPECT_EQ(read[0]["trace"], read[1]["trace"]);
  EXPECT_EQ((*lines)->Statistics().written, 2u);
}

BOBBIN_TEST(JsonLinesTest, TheLastOwnerWritesWhatIsLeft) {
  std::string written;
  {
    const auto lines = JsonLines::Open({.write =
                                            [&](std::string_view text) {
                                              written += text;
                                              return absl::OkStatus();
                                            },
                                        .interval = 1h});
    ASSERT_OK(lines);
    for (int i = 0; i < 1000; ++i) (*lines)->Add(Example());
  }
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1000);
}

BOBBIN_TEST(JsonLinesTest, AFileThatCannotBeOpenedIsAnError) {
  EXPECT_THAT(JsonLines::Open({.path = "/nowhere/at/all"}),
              test::StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace bobbin
