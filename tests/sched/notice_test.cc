// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/configuration.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/keys.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/sched/tasks.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/kept_lines.h"
#include "tests/support/kept_spans.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using test::AwaitTrue;
using test::FieldOf;
using test::KeptLines;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

BOBBIN_TEST(NoticeTest, AFailureThatNobodyHearsOfIsALineOfItsRequest) {
  const KeptLines lines;
  const auto kept = std::make_shared<test::KeptSpans>();
  const Tracing tracing({.sink = kept});
  SpanContext request;
  for (const ThreadKind kind : {ThreadKind::kPlatform, ThreadKind::kVirtual}) {
    absl::StatusOr<Executor*> executor = CurrentExecutors().Find(ThreadKindName(kind), kind);
    ASSERT_OK(executor.status());
    const Span span({.name = "request"});
    request = span.context();
    const LogFields fields({{"order", 17}});
    ASSERT_OK(
        (*executor)->Submit({.name = "receipt"}, [] { return absl::NotFoundError("no order"); }));
    ASSERT_OK((*executor)->Submit({.name = "thrown"}, [] { throw std::runtime_error("torn"); }));
    {
      Future<void> dropped =
          Async(**executor, {.name = "dropped"}, [] { return absl::InternalError("unheard"); });
    }
    ASSERT_OK(CurrentExecutors().AwaitIdle());
    const std::string of = fmt::format("of executor \"{}\" failed: ", (*executor)->name());
    AwaitTrue([&] { return lines.With(of).size() == 3; });

    const std::vector<LogRecord> receipt = lines.With("task \"receipt\" " + of);
    ASSERT_THAT(receipt, SizeIs(1));
    EXPECT_EQ(receipt[0].level, LogLevel::kError);
    EXPECT_THAT(receipt[0].text, HasSubstr("no order"));
    EXPECT_EQ(FieldOf(receipt[0], "order"), "17");
    EXPECT_EQ(FieldOf(receipt[0], "bobbin.task"), "receipt");
    EXPECT_EQ(FieldOf(receipt[0], "bobbin.executor"), (*executor)->name());
    EXPECT_EQ(receipt[0].span.trace_id, request.trace_id);
    EXPECT_THAT(lines.With("task \"thrown\" " + of)[0].text, HasSubstr("torn"));
    EXPECT_EQ(lines.With("task \"dropped\" " + of)[0].span.trace_id, request.trace_id);
  }
}

BOBBIN_TEST(NoticeTest, AChildWhoseFailureIsLoggedIsALine) {
  const KeptLines lines;
  TaskGroup group({.on_failure = OnFailure::kLog});
  group.Spawn({.name = "child"}, [] { return absl::InternalError("torn"); });
  ASSERT_OK(group.Wait());
  const std::vector<LogRecord> found = lines.With("virtual thread \"child\"");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(FieldOf(found[0], "bobbin.vthread"), "child");
  EXPECT_THAT(FieldOf(found[0], "error"), HasSubstr("torn"));
}

// Waits for a lock, and sleeps, as one might that writes to a connection.
class WaitingSink final : public LogSink {
 public:
  void Add(const LogRecord& record) override {
    const MutexLock lock(mutex_);
    // What is to be told of a thread that was asked to stop is told all the same.
    const CancelShield shield;
    EXPECT_OK(SleepFor(std::chrono::microseconds(100)));
    lines_.push_back(record);
  }
  std::vector<LogRecord> lines() {
    const MutexLock lock(mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  std::vector<LogRecord> lines_;
};

BOBBIN_TEST(NoticeTest, ASinkMayWaitWhoeverTellsItOfAFailure) {
  constexpr size_t kEach = 10;
  const auto sink = std::make_shared<WaitingSink>();
  SetLogging({.sink = sink});
  {
    const LogFields fields({{"order", 17}});
    TaskGroup group({.on_failure = OnFailure::kLog});
    for (size_t i = 0; i < kEach; ++i) {
      group.Spawn({.name = "child"}, [] { return absl::InternalError("torn"); });
      group.Spawn({.name = "thrower"}, [] { throw std::runtime_error("thrown"); });
      group.Spawn({.name = "asked to stop"}, [] { return Event().Wait(); });
    }
    Yield();
    group.Cancel();
    ASSERT_OK(group.Wait());
    // The group's end is after its lines.
    ASSERT_THAT(sink->lines(), SizeIs(3 * kEach));
    for (const LogRecord& line : sink->lines()) {
      EXPECT_EQ(FieldOf(line, "order"), "17") << line.text;
    }
  }
  for (const ThreadKind kind : {ThreadKind::kPlatform, ThreadKind::kVirtual}) {
    absl::StatusOr<Executor*> executor = CurrentExecutors().Find(ThreadKindName(kind), kind);
    ASSERT_OK(executor.status());
    for (size_t i = 0; i < kEach; ++i) {
      ASSERT_OK((*executor)->Submit([] { return absl::NotFoundError("no order"); }));
    }
  }
  ASSERT_OK(CurrentExecutors().AwaitIdle());
  AwaitTrue([&] { return sink->lines().size() == 5 * kEach; });
  SetLogging({});
}

TEST(NoticeRuntimeTest, ACarrierThatIsHeldIsALineWithItsStack) {
  const KeptLines lines;
  Runtime runtime({.carriers = 1, .watchdog = {.limit = std::chrono::milliseconds(1)}});
  std::atomic<bool> may_end = false;
  VirtualThread holder = runtime.Spawn({.name = "holder"}, [&] {
    while (!may_end) {
    }
  });
  AwaitTrue([&] { return !lines.With("is held for").empty(); });
  may_end = true;
  ASSERT_OK(holder.Join());
  const LogRecord line = lines.With("is held for").front();
  EXPECT_EQ(line.level, LogLevel::kWarning);
  EXPECT_EQ(FieldOf(line, "bobbin.carrier"), "0");
  EXPECT_EQ(line.text.find('\n'), std::string::npos);
}

TEST(NoticeRuntimeTest, ThePhasesOfAStopAreLines) {
  const KeptLines lines;
  Runtime runtime({.carriers = 1});
  const StopHook hook = runtime.lifecycle().OnStop({.phase = StopPhase::kServers, .name = "shop"},
                                                   [] { return absl::InternalError("torn"); });
  EXPECT_FALSE(runtime.lifecycle().Stop().ok());
  EXPECT_THAT(lines.With("stop: asked for"), SizeIs(1));
  EXPECT_THAT(lines.With("stop: phase 3, servers: 1 of 1 ended"), SizeIs(1));
  const std::vector<LogRecord> torn = lines.With("torn");
  ASSERT_THAT(torn, SizeIs(1));
  EXPECT_EQ(torn[0].level, LogLevel::kError);
}

TEST(NoticeConfigurationTest, AKeyThatNothingKnowsIsALine) {
  const KeptLines lines;
  ASSERT_OK(Configuration::Load({.folder = "",
                                 .values = {{"bobbin.shutdown.budgets", "1s"}},
                                 .environment = ConfigurationValues()})
                .status());
  const std::vector<LogRecord> found = lines.With("nothing in this program knows this key");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(FieldOf(found[0], "key"), "bobbin.shutdown.budgets");
  EXPECT_THAT(found[0].text, HasSubstr("bobbin.shutdown.budget?"));
}

TEST(NoticeConfigurationTest, BelowTheLevelOfTheLogItIsSilent) {
  const KeptLines lines(LogLevel::kError);
  internal::Tell({.text = "quiet"});
  EXPECT_THAT(lines.With("quiet"), IsEmpty());
}

TEST(NoticeConfigurationTest, WithoutALogItGoesToStandardErrorAsItIs) {
  testing::internal::CaptureStderr();
  internal::Tell({.text = "loud", .fields = {{"a", 1}}, .stack = "  here\n"});
  SetLogging({.level = LogLevel::kError});  // Still no sink of the program's.
  internal::Tell({.level = LogLevel::kInfo, .text = "and still"});
  SetLogging({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "bobbin: loud\n  here\nbobbin: and still\n");
}

// --- Keys.

absl::StatusOr<Configuration> With(std::string_view key, std::string_view value) {
  return Configuration::Load({.folder = "",
                              .values = {{std::string(key), std::string(value)}},
                              .environment = ConfigurationValues()});
}

TEST(KeysTest, LevelAndRatioHaveTheirDefaults) {
  const Configuration none;
  EXPECT_EQ(none.Get(keys::kLogLevel).value(), LogLevel::kInfo);
  EXPECT_EQ(none.Get(keys::kTraceSampleRatio).value(), 1.0);
  EXPECT_EQ(none.Find(keys::kShutdownBudget).value(), std::nullopt);
}

TEST(KeysTest, LevelAndRatioAreRead) {
  const absl::StatusOr<Configuration> level = With("bobbin.log.level", "Warning");
  ASSERT_OK(level.status());
  EXPECT_EQ(level->Get(keys::kLogLevel).value(), LogLevel::kWarning);
  const absl::StatusOr<Configuration> ratio = With("bobbin.trace.sample-ratio", " 0.25 ");
  ASSERT_OK(ratio.status());
  EXPECT_EQ(ratio->Get(keys::kTraceSampleRatio).value(), 0.25);
  for (const char* const wrong : {"1.5", "-0.1", "nan", "half", "0.5x", "inf"}) {
    const absl::Status refused = With("bobbin.trace.sample-ratio", wrong).status();
    EXPECT_THAT(refused, test::StatusIs(absl::StatusCode::kInvalidArgument)) << wrong;
    EXPECT_THAT(std::string(MessageOf(refused)), HasSubstr("a number from 0 to 1"));
  }
}

TEST(KeysTest, TheBudgetOfTheShutdownWinsOverTheProgram) {
  const absl::StatusOr<Configuration> budget = With("bobbin.shutdown.budget", "100ms");
  ASSERT_OK(budget.status());
  const KeptLines lines;
  Runtime runtime({.carriers = 1,
                   .shutdown_budget = std::chrono::hours(1),
                   .executors = {.configuration = *budget}});
  ASSERT_OK(runtime.lifecycle().Stop());
  EXPECT_THAT(lines.With("stop: asked for; 0.1 s for all of it"), SizeIs(1));
}

}  // namespace
}  // namespace bobbin
