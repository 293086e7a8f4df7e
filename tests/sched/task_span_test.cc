// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/tasks.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/kept_spans.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using std::chrono::milliseconds;
using test::AwaitTrue;
using test::KeptSpans;
using test::SaidOf;
using test::SpanNamed;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Executor& Named(std::string_view name, ThreadKind kind) {
  absl::StatusOr<Executor*> found = CurrentExecutors().Find(name, kind);
  EXPECT_OK(found.status());
  return **found;
}

constexpr ThreadKind kBothKinds[] = {ThreadKind::kPlatform, ThreadKind::kVirtual};

BOBBIN_TEST(TaskSpanTest, ATaskIsAChildOfItsSubmitter) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  SpanContext request;
  for (const ThreadKind kind : kBothKinds) {
    Executor& mail = Named(ThreadKindName(kind), kind);
    {
      const Span span({.name = "request"});
      request = span.context();
      Future<int> answer = Async(mail, {.name = "receipt"}, [] {
        const Span inner({.name = "send"});
        return 1;
      });
      // Its span has ended before its result can be had.
      ASSERT_OK(answer.Get());
      EXPECT_THAT(kept->Take(), SizeIs(2));
      ASSERT_OK(mail.Submit({.name = "receipt"}, [] { const Span inner({.name = "send"}); }));
      ASSERT_OK(mail.Submit([] {}));
    }
    ASSERT_OK(CurrentExecutors().AwaitIdle());

    const std::vector<SpanRecord> spans = kept->Take();
    ASSERT_THAT(spans, SizeIs(4));
    const SpanRecord receipt = SpanNamed(spans, "receipt");
    EXPECT_EQ(receipt.parent, request.span_id);
    EXPECT_EQ(receipt.context.trace_id, request.trace_id);
    EXPECT_EQ(SaidOf(receipt, "bobbin.executor"), mail.name());
    EXPECT_GE(std::strtod(SaidOf(receipt, "bobbin.task.queue_wait_ms").c_str(), nullptr), 0.0);
    EXPECT_EQ(SaidOf(receipt, "bobbin.task.attempt"), "");
    EXPECT_TRUE(receipt.status.ok());
    EXPECT_EQ(SpanNamed(spans, "send").parent, receipt.context.span_id);
    // One without a name has its executor's.
    EXPECT_EQ(SpanNamed(spans, mail.name()).parent, request.span_id);
  }
}

BOBBIN_TEST(TaskSpanTest, ATaskThatNobodyHasASpanForBeginsATrace) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  ASSERT_OK(Tasks::Platform({.name = "first"}, [] {}));
  ASSERT_OK(Tasks::Virtual({.name = "second"}, [] {}));
  ASSERT_OK(CurrentExecutors().AwaitIdle());
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_FALSE(SpanNamed(spans, "first").parent.is_set());
  EXPECT_FALSE(SpanNamed(spans, "second").parent.is_set());
  EXPECT_NE(spans[0].context.trace_id, spans[1].context.trace_id);
}

BOBBIN_TEST(TaskSpanTest, ItsStatusIsTheOutcome) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  for (const ThreadKind kind : kBothKinds) {
    Executor& executor = Named(ThreadKindName(kind), kind);
    Future<void> error =
        Async(executor, {.name = "error"}, [] { return absl::NotFoundError("no such order"); });
    EXPECT_THAT(error.Get(), test::StatusIs(absl::StatusCode::kNotFound));
    Future<void> thrown =
        Async(executor, {.name = "thrown"}, [] { throw std::runtime_error("broken"); });
    EXPECT_THROW(thrown.Get().IgnoreError(), std::runtime_error);
    Future<int> followed =
        Async(executor, {.name = "followed"}, [&] { return Async(executor, [] { return 2; }); });
    ASSERT_OK(followed.Get());
    ASSERT_OK(CurrentExecutors().AwaitIdle());

    const std::vector<SpanRecord> spans = kept->Take();
    ASSERT_THAT(spans, SizeIs(4));
    const absl::Status error_said = SpanNamed(spans, "error").status;
    EXPECT_THAT(error_said, test::StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(std::string(error_said.message()), HasSubstr("no such order"));
    const absl::Status thrown_said = SpanNamed(spans, "thrown").status;
    EXPECT_THAT(thrown_said, test::StatusIs(absl::StatusCode::kUnknown));
    EXPECT_THAT(std::string(thrown_said.message()), HasSubstr("broken"));
    EXPECT_TRUE(SpanNamed(spans, "followed").status.ok());
    EXPECT_EQ(SpanNamed(spans, executor.name()).parent,
              SpanNamed(spans, "followed").context.span_id);
  }
}

BOBBIN_TEST(TaskSpanTest, EachAttemptHasOne) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Executor& executor = Named("mail", ThreadKind::kVirtual);
  Future<void> sent =
      Async(executor, {.name = "send", .retry = {.attempts_max = 3, .backoff = milliseconds(1)}},
            [attempt = 0]() mutable {
              return ++attempt < 3 ? absl::UnavailableError("busy") : absl::OkStatus();
            });
  ASSERT_OK(sent.Get());
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_THAT(spans[0].status, test::StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(SaidOf(spans[0], "bobbin.task.attempt"), "");
  EXPECT_EQ(SaidOf(spans[1], "bobbin.task.attempt"), "2");
  EXPECT_EQ(SaidOf(spans[2], "bobbin.task.attempt"), "3");
  EXPECT_TRUE(spans[2].status.ok());
}

BOBBIN_TEST(TaskSpanTest, ATraceThatIsNotKeptHasNone) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  const SpanContext remote{.trace_id = {1, 2}, .span_id = {3}, .is_sampled = false};
  {
    const Span request({.name = "request", .remote_parent = remote});
    for (const ThreadKind kind : kBothKinds) {
      Future<bool> passed = Async(Named(ThreadKindName(kind), kind), [remote] {
        const Span inner({.name = "inner"});
        return Span::Current() != nullptr && *Span::Current() == remote;
      });
      EXPECT_TRUE(*passed.Get());
    }
  }
  EXPECT_THAT(kept->Take(), IsEmpty());
}

BOBBIN_TEST(TaskSpanTest, WhatDoesNotBeginHasNone) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Executor& executor = Named("mail", ThreadKind::kVirtual);
  Future<void> later = Async(executor, {.delay = std::chrono::hours(1)}, [] {});
  EXPECT_TRUE(later.TryCancel());
  ASSERT_OK(CurrentExecutors().Shutdown(milliseconds(10)));
  EXPECT_FALSE(executor.Submit([] {}).ok());
  EXPECT_THAT(kept->Take(), IsEmpty());
}

TEST(TaskSpanShutdownTest, OneThatIsAbandonedEndsWithItsBody) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  Event may_end;
  {
    Runtime runtime({.carriers = 1});
    Event has_begun;
    absl::StatusOr<Executor*> stuck = runtime.executors().Find("stuck", ThreadKind::kPlatform);
    ASSERT_OK(stuck.status());
    Future<void> result = Async(**stuck, {.name = "stuck"}, [&] {
      has_begun.Set();
      while (!may_end.IsSet()) std::this_thread::sleep_for(milliseconds(1));
    });
    ASSERT_OK(has_begun.Wait());
    EXPECT_THAT(runtime.executors().Shutdown(milliseconds(10)),
                test::StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(result.Get(), test::StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(kept->Take(), IsEmpty());
    may_end.Set();
  }
  AwaitTrue([&] { return kept->size() > 0; });
  EXPECT_THAT(kept->Take(), SizeIs(1));
}

TEST(TaskSpanShutdownTest, EachThatHasRunHasEndedOnce) {
  uint64_t total = 0;
  for (int round = 0; round < test::Rounds(40); ++round) {
    const auto kept = std::make_shared<KeptSpans>();
    const Tracing tracing({.sink = kept});
    uint64_t ran = 0;
    {
      RuntimeOptions options{.carriers = 2};
      options.executors.named["mail"] = {.kind = ThreadKind::kVirtual, .concurrency = 8};
      options.executors.named["files"] = {.kind = ThreadKind::kPlatform, .threads = 2};
      Runtime runtime(std::move(options));
      std::vector<Future<void>> results;
      for (const std::string_view name : {"mail", "files"}) {
        absl::StatusOr<Executor*> executor = runtime.executors().Find(name);
        ASSERT_OK(executor.status());
        for (int i = 0; i < 40; ++i) {
          results.push_back(Async(**executor, [i] {
            return i % 3 == 0 ? absl::InternalError("third") : absl::OkStatus();
          }));
          if (i % 5 == 0) results.back().TryCancel();
        }
      }
      runtime.executors().Shutdown(std::chrono::microseconds(round * 20)).IgnoreError();
      for (Future<void>& result : results) result.Get().IgnoreError();
      ASSERT_OK(runtime.Shutdown());
      for (const Executor* const executor : runtime.executors().All()) {
        const ExecutorStatistics is = executor->Statistics();
        ran += is.completed + is.failed + is.abandoned;
      }
    }
    const std::vector<SpanRecord> spans = kept->Take();
    EXPECT_EQ(spans.size(), ran);
    std::set<uint64_t> ids;
    for (const SpanRecord& span : spans) ids.insert(span.context.span_id.value);
    EXPECT_EQ(ids.size(), spans.size());
    total += ran;
  }
  EXPECT_GT(total, 0U);
}

BOBBIN_TEST(UntracedScopeTest, NothingInItHasASpan) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    const Span outer({.name = "outer"});
    {
      const UntracedScope untraced;
      EXPECT_EQ(Span::Current(), nullptr);
      EXPECT_FALSE(Span::MayBeKept());
      const Span inner({.name = "inner", .remote_parent = outer.context()});
      EXPECT_FALSE(inner.is_kept());
      Future<bool> task =
          Async(Named("mail", ThreadKind::kPlatform), [] { return Span::Current() == nullptr; });
      EXPECT_TRUE(*task.Get());
    }
    EXPECT_EQ(*Span::Current(), outer.context());
    EXPECT_TRUE(Span::MayBeKept());
  }
  EXPECT_THAT(kept->Take(), SizeIs(1));
}

// Else what sends spans away would send those of its own sending, and so on.
BOBBIN_TEST(UntracedScopeTest, AWritersThreadWorksInOne) {
  absl::StatusOr<std::shared_ptr<JsonLines>> lines =
      JsonLines::Open({.write = [](std::string_view) {
        const Span span({.name = "write"});
        return span.is_kept() ? absl::InternalError("kept") : absl::OkStatus();
      }});
  ASSERT_OK(lines.status());
  const Tracing tracing({.sink = *lines});
  { const Span span({.name = "one"}); }
  ASSERT_OK((*lines)->Flush());
  EXPECT_EQ((*lines)->Statistics().added, 1U);
  EXPECT_EQ((*lines)->Statistics().failed, 0U);
}

}  // namespace
}  // namespace bobbin
