// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/kept_spans.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using test::KeptSpans;
using test::SpanNamed;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SpanContext Remote(bool is_sampled) {
  return {.trace_id = {1, 2}, .span_id = {3}, .is_sampled = is_sampled, .trace_state = "a=1"};
}

BOBBIN_TEST(SpanTest, EachIsTheChildOfTheOneAroundIt) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    const Span outer({.name = "outer"});
    const Span inner({.name = "inner"});
    EXPECT_EQ(*Span::Current(), inner.context());
  }
  { const Span other({.name = "other"}); }
  EXPECT_EQ(Span::Current(), nullptr);

  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(3));
  const SpanRecord& outer = SpanNamed(spans, "outer");
  const SpanRecord& inner = SpanNamed(spans, "inner");
  EXPECT_FALSE(outer.parent.is_set());
  EXPECT_EQ(inner.parent, outer.context.span_id);
  EXPECT_EQ(inner.context.trace_id, outer.context.trace_id);
  EXPECT_NE(inner.context.span_id, outer.context.span_id);
  EXPECT_NE(SpanNamed(spans, "other").context.trace_id, outer.context.trace_id);
  EXPECT_LE(outer.start, inner.start);
  EXPECT_LE(inner.start, inner.end);
  EXPECT_TRUE(outer.status.ok());
}

BOBBIN_TEST(SpanTest, WhatAThreadStartsBelongsToItsSpan) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    const Span request({.name = "request"});
    TaskGroup group;
    group.Spawn([] { const Span child({.name = "group"}); });
    ASSERT_OK(Spawn([] { const Span child({.name = "spawn"}); }).Join());
    ASSERT_OK(RunBlocking([] { const Span child({.name = "blocking"}); }));
    ASSERT_OK(group.Wait());
  }
  // Who comes after it on the same threads does not.
  ASSERT_OK(Spawn([] { const Span child({.name = "later"}); }).Join());
  ASSERT_OK(RunBlocking([] { EXPECT_EQ(Span::Current(), nullptr); }));

  const std::vector<SpanRecord> spans = kept->Take();
  const SpanRecord& request = SpanNamed(spans, "request");
  for (std::string_view name : {"group", "spawn", "blocking"}) {
    EXPECT_EQ(SpanNamed(spans, name).parent, request.context.span_id) << name;
  }
  EXPECT_FALSE(SpanNamed(spans, "later").parent.is_set());
}

BOBBIN_TEST(SpanTest, WhatIsSaidAboutItIsKept) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    Span span({.name = "s", .kind = SpanKind::kClient, .attributes = {{"a", 1}, {"b", "x"}}});
    EXPECT_TRUE(span.is_kept());
    span.Set("a", true);
    span.Set("c", 0.5);
    span.AddEvent("tried", {{"n", size_t{2}}, {"n", 3}});
    span.SetStatus(absl::OkStatus());
    span.SetStatus(absl::NotFoundError("gone"));
    span.SetStatus(absl::InternalError("later"));
  }
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(1));
  const SpanRecord& span = spans[0];
  EXPECT_EQ(span.kind, SpanKind::kClient);
  EXPECT_THAT(span.attributes,
              ElementsAre(Attribute{"a", true}, Attribute{"b", "x"}, Attribute{"c", 0.5}));
  ASSERT_THAT(span.events, SizeIs(1));
  EXPECT_THAT(span.events[0].attributes, ElementsAre(Attribute{"n", 3}));
  EXPECT_LE(span.start, span.events[0].time);
  EXPECT_LE(span.events[0].time, span.end);
  EXPECT_EQ(span.status, absl::NotFoundError("gone"));
}

BOBBIN_TEST(SpanTest, WhatHasNoRoomIsCounted) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    Span span({.name = "s"});
    for (size_t i = 0; i < Span::kAttributesMax + 3; ++i) span.Set(std::to_string(i), i);
    for (size_t i = 0; i < Span::kEventsMax + 4; ++i) span.AddEvent("e");
    span.Set("0", "changes all the same");
  }
  const std::vector<SpanRecord> spans = kept->Take();
  EXPECT_THAT(spans.at(0).attributes, SizeIs(Span::kAttributesMax));
  EXPECT_EQ(spans.at(0).dropped_attributes, 3u);
  EXPECT_EQ(spans.at(0).attributes.at(0).value, "changes all the same");
  EXPECT_EQ(spans.at(0).dropped_events, 4u);
}

BOBBIN_TEST(SpanTest, AnExceptionIsItsStatus) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  EXPECT_THROW(
      {
        const Span span({.name = "s"});
        throw std::runtime_error("x");
      },
      std::runtime_error);
  try {
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
    const Span fine({.name = "fine"});
    Yield();
  }
  const std::vector<SpanRecord> spans = kept->Take();
  EXPECT_FALSE(SpanNamed(spans, "s").status.ok());
  EXPECT_TRUE(SpanNamed(spans, "fine").status.ok());
}

BOBBIN_TEST(SpanTest, TheCallerInAnotherProcessIsTheParent) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept, .sample_ratio = 0});
  {
    const Span around({.name = "around"});  // Not kept.
    const Span server({.name = "server", .remote_parent = Remote(true)});
    EXPECT_TRUE(server.is_kept());
    EXPECT_EQ(server.context().trace_state, "a=1");
    const Span inner({.name = "inner"});
    EXPECT_TRUE(inner.is_kept());
  }
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(SpanNamed(spans, "server").parent, SpanId{3});
  EXPECT_EQ(SpanNamed(spans, "inner").context.trace_id, (TraceId{1, 2}));
}

BOBBIN_TEST(SpanTest, ATraceThatIsNotKeptIsPassedOnAsItCame) {
  const auto kept = std::make_shared<KeptSpans>();
  const auto look = [] {
    Span server({.name = "server", .remote_parent = Remote(false)});
    const Span inner({.name = "inner"});
    server.Set("a", 1);
    server.AddEvent("e");
    EXPECT_FALSE(server.is_kept());
    EXPECT_EQ(inner.context(), Remote(false));
    EXPECT_EQ(*Span::Current(), Remote(false));
  };
  look();  // Without Tracing.
  {
    const Tracing tracing({.sink = kept});
    look();
  }
  EXPECT_THAT(kept->Take(), IsEmpty());
  const Span nothing({.name = "nothing"});
  EXPECT_FALSE(nothing.context().is_set());
  EXPECT_EQ(Span::Current(), nullptr);
}

TEST(SpanTest, TheRatioOfTracesIsKeptAndTheirSpansFollow) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept, .sample_ratio = 0.25});
  for (int i = 0; i < 10'000; ++i) {
    const Span root({.name = "root"});
    const Span child({.name = "child"});
    EXPECT_EQ(root.is_kept(), child.is_kept());
    EXPECT_TRUE(root.context().is_set());
  }
  const size_t count = kept->Take().size();
  EXPECT_GT(count, 2u * 2100);  // Ten standard deviations.
  EXPECT_LT(count, 2u * 2900);
}

TEST(SpanTest, OneThatEndsAfterItsTracingIsHandedOverAllTheSame) {
  const auto kept = std::make_shared<KeptSpans>();
  std::optional<Tracing> tracing;
  tracing.emplace(TracingOptions{.sink = kept});
  {
    const Span span({.name = "s"});
    tracing.reset();
    const Span child({.name = "child"});
  }
  EXPECT_THAT(kept->Take(), SizeIs(2));
  { const Span span({.name = "s"}); }
  EXPECT_THAT(kept->Take(), IsEmpty());
}

BOBBIN_TEST(SpanTest, NoTwoHaveOneId) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  constexpr int kThreads = 8;
  constexpr int kSpans = 500;
  TaskGroup group;
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([] {
      for (int j = 0; j < kSpans; ++j) {
        const Span span({.name = "s"});
        YieldIfDue();
      }
    });
  }
  ASSERT_OK(group.Wait());
  std::set<uint64_t> ids;
  for (const SpanRecord& span : kept->Take()) ids.insert(span.context.span_id.value);
  EXPECT_THAT(ids, SizeIs(kThreads * kSpans));
}

TEST(SpanDeathTest, ThereIsOneTracingAndItHasASink) {
  EXPECT_DEATH(Tracing({}), "spans go somewhere");
  EXPECT_DEATH(
      {
        const Tracing one({.sink = std::make_shared<KeptSpans>()});
        const Tracing two({.sink = std::make_shared<KeptSpans>()});
      },
      "one Tracing at a time");
}

}  // namespace
}  // namespace bobbin
