// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/mutex.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Kept final : public LogSink {
 public:
  void Add(const LogRecord& record) override {
    MutexLock lock(mutex_);
    records_.push_back(record);
  }
  std::vector<LogRecord> Take() {
    MutexLock lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  Mutex mutex_;
  std::vector<LogRecord> records_ ABSL_GUARDED_BY(mutex_);
};

// Has the lines of a scope kept.
class Caught {
 public:
  explicit Caught(LogLevel level = LogLevel::kInfo) { SetLogging({.sink = kept_, .level = level}); }
  ~Caught() { SetLogging({}); }
  std::vector<LogRecord> Take() { return kept_->Take(); }

 private:
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

BOBBIN_TEST(LogTest, FieldsInForceStandInEveryLine) {
  Caught caught;
  {
    const LogFields outer({{"tenant", "acme"}, {"order", 1}});
    const LogFields inner({{"order", 2}});
    Log(LogLevel::kWarning, "low", {{"left", 3}});
    TaskGroup group;
    group.Spawn([] { Log(LogLevel::kInfo, "child"); });
    ASSERT_OK(RunBlocking([] { Log(LogLevel::kInfo, "blocking"); }));
    ASSERT_OK(group.Wait());
  }
  Log(LogLevel::kInfo, "after");
  ASSERT_OK(RunBlocking([] { Log(LogLevel::kInfo, "after"); }));

  const Attribute tenant{"tenant", "acme"};
  const Attribute first{"order", 1};
  const Attribute second{"order", 2};
  int after = 0;
  for (const LogRecord& record : caught.Take()) {
    if (record.text == "low") {
      EXPECT_EQ(record.level, LogLevel::kWarning);
      EXPECT_THAT(record.fields, ElementsAre(tenant, first, second, Attribute{"left", 3}));
    } else if (record.text == "after") {
      EXPECT_THAT(record.fields, IsEmpty());
      ++after;
    } else {
      EXPECT_THAT(record.fields, ElementsAre(tenant, first, second)) << record.text;
    }
  }
  EXPECT_EQ(after, 2);
}

BOBBIN_TEST(LogTest, APoolThreadKeepsNothingForItsNextBody) {
  Caught caught;
  PlatformPool pool({.name = "one", .threads = 1});
  for (int i = 0; i < 20; ++i) {
    const bool has_fields = i % 2 == 0;
    const auto body = [] { Log(LogLevel::kInfo, "x"); };
    if (has_fields) {
      const LogFields fields({{"i", i}});
      ASSERT_OK(pool.RunBlocking(body));
    } else {
      ASSERT_OK(pool.RunBlocking(body));
    }
    const std::vector<LogRecord> lines = caught.Take();
    ASSERT_THAT(lines, SizeIs(1));
    EXPECT_THAT(lines[0].fields, SizeIs(has_fields ? 1 : 0));
  }
}

BOBBIN_TEST(LogTest, LinesBelowTheLevelAreNotWritten) {
  Caught caught(LogLevel::kWarning);
  Log(LogLevel::kDebug, "no");
  Log(LogLevel::kInfo, "no");
  Log(LogLevel::kWarning, "yes");
  Log(LogLevel::kError, "yes");
  EXPECT_THAT(caught.Take(), SizeIs(2));
}

BOBBIN_TEST(LogTest, ALineKnowsItsSpan) {
  Caught caught;
  const Span span(
      {.name = "s", .remote_parent = {.trace_id = {1, 2}, .span_id = {3}, .is_sampled = true}});
  Log(LogLevel::kInfo, "x");
  const std::vector<LogRecord> lines = caught.Take();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].span.trace_id, (TraceId{1, 2}));
}

TEST(LogTest, StandardErrorGetsText) {
  testing::internal::CaptureStderr();
  {
    const LogFields fields({{"order", 17}});
    Log(LogLevel::kInfo, "accepted", {{"fast", true}});
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::EndsWith("Z INFO accepted order=17 fast=true\n"));
  const LogRecord record{.time = absl::FromUnixMillis(1'796'072'700'123),
                         .level = LogLevel::kError,
                         .text = "x",
                         .fields = {},
                         .span = {.trace_id = {0, 255}, .span_id = {1}}};
  EXPECT_EQ(record.ToString(),
            "2026-11-30T21:05:00.123Z ERROR x trace=000000000000000000000000000000ff");
}

BOBBIN_TEST(LogTest, TheSinkMayChangeWhileOthersWrite) {
  Caught caught;
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn([] {
      for (int j = 0; j < 200; ++j) {
        Log(LogLevel::kInfo, "x");
        Yield();
      }
    });
  }
  size_t lines = 0;
  std::vector<std::shared_ptr<Kept>> sinks;
  for (int i = 0; i < 50; ++i) {
    SetLogging({.sink = sinks.emplace_back(std::make_shared<Kept>())});
    Yield();
  }
  ASSERT_OK(group.Wait());
  for (const std::shared_ptr<Kept>& sink : sinks) lines += sink->Take().size();
  EXPECT_EQ(lines + caught.Take().size(), 800u);
}

}  // namespace
}  // namespace bobbin
