// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kExists = absl::StatusCode::kAlreadyExists;

const MetricSnapshot& Named(const MetricsSnapshot& snapshot, std::string_view name) {
  for (const MetricSnapshot& metric : snapshot.metrics()) {
    if (metric.name == name) return metric;
  }
  ADD_FAILURE() << "no metric " << name;
  static const MetricSnapshot none;
  return none;
}

using Attributes = std::vector<Attribute>;

BOBBIN_TEST(MetricsTest, ASeriesIsThatOfItsAttributesInWhicheverOrder) {
  Metrics metrics;
  const auto orders = metrics.MakeCounter({.name = "shop.orders", .help = "h", .unit = "{order}"});
  ASSERT_OK(orders);
  orders->At().Add();
  orders->At({{"a", 1}, {"b", "x"}}).Add(2);
  orders->At({{"b", "x"}, {"a", 1}}).Add(3);
  orders->At({{"a", 2}, {"b", "x"}, {"a", 1}}).Add(4);
  orders->At({{"a", "1b"}, {"b", "x"}}).Add(5);

  const MetricsSnapshot snapshot = metrics.Snapshot();
  const MetricSnapshot& metric = Named(snapshot, "shop.orders");
  EXPECT_EQ(metric.kind, MetricKind::kCounter);
  EXPECT_EQ(metric.help, "h");
  EXPECT_EQ(metric.unit, "{order}");
  EXPECT_THAT(metric.points, SizeIs(3));
  EXPECT_EQ(snapshot.Value("shop.orders"), 1);
  EXPECT_EQ(snapshot.Value("shop.orders", Attributes{{"b", "x"}, {"a", 1}}), 9);
  EXPECT_EQ(snapshot.Value("shop.orders", Attributes{{"a", 3}}), 0);
}

BOBBIN_TEST(MetricsTest, AGaugeIsWhatItWasSetTo) {
  Metrics metrics;
  const auto level = metrics.MakeGauge({.name = "level"});
  ASSERT_OK(level);
  const Gauge gauge = level->At();
  gauge.Set(5);
  gauge.Add(2.5);
  gauge.Add(-10);
  EXPECT_EQ(metrics.Snapshot().Value("level"), -2.5);
}

BOBBIN_TEST(MetricsTest, AHistogramCountsUpToItsBounds) {
  Metrics metrics;
  const auto sizes = metrics.MakeHistogram({.name = "size", .unit = "By", .bounds = {0, 1.5, 10}});
  ASSERT_OK(sizes);
  const Histogram histogram = sizes->At();
  for (double value : {-1.0, 0.0, 0.1, 1.5, 1.6, 10.0, 10.1, 1e9}) histogram.Record(value);
  histogram.Record(std::numeric_limits<double>::quiet_NaN());
  const MetricsSnapshot snapshot = metrics.Snapshot();
  const MetricSnapshot& metric = Named(snapshot, "size");
  EXPECT_THAT(metric.bounds, ElementsAre(0, 1.5, 10));
  ASSERT_THAT(metric.points, SizeIs(1));
  EXPECT_THAT(metric.points[0].counts, ElementsAre(2, 2, 2, 2));
  EXPECT_DOUBLE_EQ(metric.points[0].value, 1e9 + 22.3);
  EXPECT_THAT(HistogramOptions().bounds,
              ElementsAre(0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000));
}

BOBBIN_TEST(MetricsTest, BeyondTheLimitOneSeriesCountsAllOthers) {
  Metrics metrics({.series_max = 10});
  const auto paths = metrics.MakeCounter({.name = "paths"});
  const auto others = metrics.MakeCounter({.name = "others"});
  ASSERT_OK(paths);
  ASSERT_OK(others);
  for (int i = 0; i < 100; ++i) paths->At({{"path", i}}).Add();
  paths->At({{"path", 3}}).Add();   // It has a series already.
  others->At({{"path", 1}}).Add();  // Each metric has its own limit.
  const MetricsSnapshot snapshot = metrics.Snapshot();
  EXPECT_THAT(Named(snapshot, "paths").points, SizeIs(11));
  EXPECT_EQ(snapshot.Value("paths", Attributes{{"otel.metric.overflow", true}}), 90);
  EXPECT_EQ(snapshot.Value("paths", Attributes{{"path", 3}}), 2);
  EXPECT_THAT(Named(snapshot, "others").points, SizeIs(1));
  EXPECT_EQ(MetricsOptions().series_max, 2000u);
}

BOBBIN_TEST(MetricsTest, AMetricIsMadeOnceAndAskedForAgain) {
  Metrics metrics;
  const auto first = metrics.MakeCounter({.name = "shop.orders"});
  ASSERT_OK(first);
  const auto again = metrics.MakeCounter({.name = "shop.orders"});
  ASSERT_OK(again);
  first->At().Add();
  again->At().Add();
  EXPECT_EQ(metrics.Snapshot().Value("shop.orders"), 2);
  EXPECT_THAT(metrics.MakeGauge({.name = "shop.orders"}), test::StatusIs(kExists));
  EXPECT_THAT(metrics.MakeCounter({.name = "shop.orders", .unit = "x"}), test::StatusIs(kExists));
}

BOBBIN_TEST(MetricsTest, NamesThatMeetInPrometheusAreRefused) {
  Metrics metrics;
  ASSERT_OK(metrics.MakeCounter({.name = "shop.orders"}));
  ASSERT_OK(metrics.MakeHistogram({.name = "shop.time"}));
  ASSERT_OK(metrics.MakeGauge({.name = "shop.orders-now"}));
  for (const char* name : {"shop-orders", "shop_orders", "shop.orders.total"}) {
    EXPECT_THAT(metrics.MakeCounter({.name = name}), test::StatusIs(kExists)) << name;
  }
  for (const char* name : {"shop.orders_total", "shop.time.count", "shop.time_bucket", "shop_time",
                           "shop/orders.now"}) {
    EXPECT_THAT(metrics.MakeGauge({.name = name}), test::StatusIs(kExists)) << name;
  }
  ASSERT_OK(metrics.MakeGauge({.name = "shop.orders2"}));
  EXPECT_THAT(MessageOf(metrics.MakeCounter({.name = "shop-orders"}).status()),
              HasSubstr("shop_orders_total"));
}

BOBBIN_TEST(MetricsTest, WhatCannotBeAMetricIsRefused) {
  Metrics metrics;
  for (const std::string& name : {std::string(), std::string("1a"), std::string("a b"),
                                  std::string("a\n"), std::string("_a"), std::string(300, 'a')}) {
    EXPECT_THAT(metrics.MakeCounter({.name = name}), test::StatusIs(kInvalid)) << name;
  }
  for (const std::vector<double>& bounds : {std::vector<double>{1, 1},
                                            {2, 1},
                                            {std::numeric_limits<double>::infinity()},
                                            {std::nan("")}}) {
    EXPECT_THAT(metrics.MakeHistogram({.name = "h", .bounds = bounds}), test::StatusIs(kInvalid));
  }
  EXPECT_THAT(metrics.Snapshot().metrics(), IsEmpty());
}

BOBBIN_TEST(MetricsTest, SourcesAreAskedUntilTheyEndAndWhatTheySayIsAddedUp) {
  Metrics metrics;
  const auto say = [](double depth) {
    return [depth](MetricsSnapshot& snapshot) {
      snapshot.AddGauge({.name = "depth"}, depth, {{"name", "x"}});
    };
  };
  const MetricsSource first = metrics.AddSource(say(1));
  {
    MetricsSource second = metrics.AddSource(say(10));
    const MetricsSource moved = std::move(second);
    EXPECT_EQ(metrics.Snapshot().Value("depth", Attributes{{"name", "x"}}), 11);
  }
  const MetricsSource other = metrics.AddSource([](MetricsSnapshot& snapshot) {
    snapshot.AddCounter({.name = "depth"}, 100, {{"name", "x"}});  // Another kind: left out.
  });
  EXPECT_EQ(metrics.Snapshot().Value("depth", Attributes{{"name", "x"}}), 1);
}

BOBBIN_TEST(MetricsTest, NoCountIsLostWhoeverCountsAtOnce) {
  Metrics metrics;
  const auto counters = metrics.MakeCounter({.name = "c"});
  const auto gauges = metrics.MakeGauge({.name = "g"});
  const auto histograms = metrics.MakeHistogram({.name = "h"});
  ASSERT_OK(counters);
  ASSERT_OK(gauges);
  ASSERT_OK(histograms);
  constexpr int kThreads = 8;
  const int rounds = test::Rounds(2000);
  internal::Atomic<bool> is_over{false};
  TaskGroup group;
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([&, i] {
      const auto count = [&] {
        for (int j = 0; j < rounds; ++j) {
          counters->At({{"i", j % 3}}).Add();
          gauges->At().Add(j % 2 == 0 ? 1 : -1);
          histograms->At().Record(j % 100);
          if (j % 16 == 0 && this_vthread::Id() != 0) Yield();
        }
      };
      if (i % 4 != 0) return count();
      EXPECT_OK(RunBlocking(count));
    });
  }
  VirtualThread reader = runtime().Spawn([&] {
    double last = 0;
    while (!is_over.load()) {
      const double now = metrics.Snapshot().Value("c", Attributes{{"i", 0}});
      EXPECT_GE(now, last);
      last = now;
      Yield();
    }
  });
  ASSERT_OK(group.Wait());
  is_over.store(true);
  ASSERT_OK(reader.Join());

  const MetricsSnapshot snapshot = metrics.Snapshot();
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += snapshot.Value("c", Attributes{{"i", i}});
  EXPECT_EQ(sum, kThreads * rounds);
  EXPECT_EQ(snapshot.Value("g"), rounds % 2 == 0 ? 0 : kThreads);
  uint64_t recorded = 0;
  for (uint64_t count : Named(snapshot, "h").points.at(0).counts) recorded += count;
  EXPECT_EQ(recorded, static_cast<uint64_t>(kThreads * rounds));
}

TEST(PrometheusNameTest, LettersDigitsAndUnderscoresAreLeft) {
  EXPECT_EQ(PrometheusName("bobbin.task.queue_depth", MetricKind::kGauge),
            "bobbin_task_queue_depth");
  EXPECT_EQ(PrometheusName("a/b-c.d", MetricKind::kCounter), "a_b_c_d_total");
  EXPECT_EQ(PrometheusName("a.total", MetricKind::kCounter), "a_total");
  EXPECT_EQ(PrometheusName("1a\xC3\xA4", MetricKind::kGauge), "_1a__");
}

}  // namespace
}  // namespace bobbin
