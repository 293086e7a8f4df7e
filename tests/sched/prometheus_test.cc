// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/sched/executor.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/prometheus.h>
#include <bobbin/sched/runtime_metrics.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

struct Family {
  std::string help;
  std::string type;
  std::vector<Sample> samples;
};

// Reads the text format, and complains about whatever it does not allow.
class Parser {
 public:
  explicit Parser(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line_ = line;
      if (line.starts_with("# HELP ")) {
        Begin(line.substr(7)).help = line.substr(line.find(' ', 7) + 1);
      } else if (line.starts_with("# TYPE ")) {
        std::istringstream words(line.substr(7));
        std::string name;
        std::string type;
        words >> name >> type;
        Family& family = families_[name];
        EXPECT_EQ(family.type, "") << line;
        family.type = type;
        current_ = name;
      } else if (!line.starts_with('#')) {
        AddSample(line);
      }
    }
  }

  const std::map<std::string, Family>& families() const { return families_; }
  std::optional<double> Value(std::string_view name, const Labels& labels) const {
    for (const auto& [family_name, family] : families_) {
      for (const Sample& sample : family.samples) {
        if (sample.name == name && sample.labels == labels) return sample.value;
      }
    }
    return std::nullopt;
  }

 private:
  Family& Begin(const std::string& rest) {
    current_ = rest.substr(0, rest.find(' '));
    EXPECT_FALSE(families_.contains(current_)) << "twice: " << line_;
    return families_[current_];
  }

  static bool IsName(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (char c : name) {
      const bool is_right = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '_' || c == ':';
      if (!is_right) return false;
    }
    return true;
  }

  void AddSample(const std::string& line) {
    Sample sample;
    size_t at = line.find_first_of("{ ");
    ASSERT_NE(at, line.npos) << line;
    sample.name = line.substr(0, at);
    EXPECT_TRUE(IsName(sample.name)) << line;
    if (line[at] == '{') {
      ++at;
      while (line.at(at) != '}') {
        const size_t equals = line.find("=\"", at);
        ASSERT_NE(equals, line.npos) << line;
        const std::string label = line.substr(at, equals - at);
        EXPECT_TRUE(IsName(label) && label.find(':') == label.npos) << line;
        std::string value;
        for (at = equals + 2; line.at(at) != '"'; ++at) {
          if (line[at] == '\\') {
            ++at;
            ASSERT_NE(std::string_view("\\\"n").find(line.at(at)), std::string_view::npos) << line;
            value += line[at] == 'n' ? '\n' : line[at];
          } else {
            value += line[at];
          }
        }
        EXPECT_TRUE(sample.labels.emplace(label, value).second) << line;
        ++at;
        if (line.at(at) == ',') ++at;
      }
      ++at;
    }
    ASSERT_EQ(line.at(at), ' ') << line;
    char* end = nullptr;
    sample.value = std::strtod(line.c_str() + at + 1, &end);
    EXPECT_EQ(*end, '\0') << line;
    ASSERT_TRUE(sample.name.starts_with(current_)) << line;
    EXPECT_TRUE(seen_.emplace(sample.name, sample.labels).second) << "twice: " << line;
    families_[current_].samples.push_back(sample);
  }

  std::map<std::string, Family> families_;
  std::string current_;
  std::string line_;
  std::set<std::pair<std::string, Labels>> seen_;
};

TEST(PrometheusTest, EachKindIsWritten) {
  Metrics metrics;
  metrics.MakeCounter({.name = "shop.orders", .help = "All orders.", .unit = "{order}"})
      ->At({{"shop.kind", "ex\"press\\\n"}, {"fast", true}})
      .Add(3);
  metrics.MakeGauge({.name = "level"})->At().Set(-0.5);
  const auto time = metrics.MakeHistogram({.name = "time", .unit = "ms", .bounds = {1, 10}});
  for (double value : {0.5, 1.0, 5.0, 100.0}) time->At({{"le", "x"}}).Record(value);

  const Parser text(PrometheusText(metrics.Snapshot()));
  ASSERT_EQ(text.families().size(), 3u);
  EXPECT_EQ(text.families().at("shop_orders_total").type, "counter");
  EXPECT_EQ(text.families().at("shop_orders_total").help, "All orders. [{order}]");
  EXPECT_EQ(text.families().at("level").type, "gauge");
  EXPECT_EQ(text.families().at("time").type, "histogram");
  EXPECT_EQ(text.Value("shop_orders_total", {{"shop_kind", "ex\"press\\\n"}, {"fast", "true"}}), 3);
  EXPECT_EQ(text.Value("level", {}), -0.5);
  const auto bucket = [&](const char* bound) {
    return text.Value("time_bucket", {{"attribute_le", "x"}, {"le", bound}});
  };
  EXPECT_EQ(bucket("1"), 2);
  EXPECT_EQ(bucket("10"), 3);
  EXPECT_EQ(bucket("+Inf"), 4);
  EXPECT_EQ(text.Value("time_count", {{"attribute_le", "x"}}), 4);
  EXPECT_EQ(text.Value("time_sum", {{"attribute_le", "x"}}), 106.5);
}

TEST(PrometheusTest, WhatMeetsIsLeftOutOrJoined) {
  MetricsSnapshot snapshot;
  snapshot.AddGauge({.name = "a.b"}, 1, {{"x.y", "1"}, {"x_y", "2"}, {"__z", "3"}});
  snapshot.AddGauge({.name = "a-b"}, 2);
  snapshot.AddGauge({.name = "nan", .help = "two\nlines"}, std::nan(""));
  const Parser text(PrometheusText(snapshot));
  EXPECT_EQ(text.families().size(), 2u);
  EXPECT_EQ(text.Value("a_b", {{"x_y", "1;2"}, {"attribute___z", "3"}}), 1);
}

BOBBIN_FOREIGN_TEST(PrometheusTest, TheRuntimeAndItsPoolsAreThere) {
  Metrics metrics;
  PlatformPool pool({.name = "reports", .threads = 1});
  const MetricsSource threads = MeasureRuntime(metrics, runtime());
  const MetricsSource tasks = MeasurePool(metrics, pool);
  const PrometheusCollector collector(metrics);
  for (int i = 0; i < 3; ++i) ASSERT_OK(runtime().Spawn([] { Yield(); }).Join());
  ASSERT_OK(pool.RunBlocking([] {}));

  // Who joins goes on a little before the carrier has counted the end.
  test::AwaitTrue([&] {
    return runtime().Statistics().parked == 0 && pool.Statistics().completed == 1;
  });
  const Parser text(PrometheusText(metrics.Snapshot()));
  EXPECT_GE(text.Value("bobbin_vthread_spawned_total", {}).value_or(-1), 3);
  EXPECT_EQ(text.Value("bobbin_vthread_count", {{"bobbin_vthread_state", "parked"}}), 0);
  EXPECT_EQ(text.Value("bobbin_task_queue_depth", {{"bobbin_executor", "reports"}}), 0);
  EXPECT_EQ(text.Value("bobbin_task_completed_total", {{"bobbin_executor", "reports"}}), 1);
  EXPECT_TRUE(text.Value("bobbin_task_queue_depth", {{"bobbin_executor", "blocking"}}));
  EXPECT_EQ(collector.Collect().size(), text.families().size());
  ASSERT_OK(pool.Shutdown());
}

BOBBIN_FOREIGN_TEST(PrometheusTest, ExecutorsAreThereByName) {
  Metrics metrics;
  const MetricsSource source = MeasureRuntime(metrics, runtime());
  const absl::StatusOr<Executor*> reports =
      runtime().executors().Find("reports", ThreadKind::kVirtual);
  ASSERT_OK(reports);
  ASSERT_OK((*reports)->Submit([] {}));
  ASSERT_OK((*reports)->Submit([] { return absl::InternalError("no"); }));
  ASSERT_OK(runtime().executors().AwaitIdle());
  const Parser text(PrometheusText(metrics.Snapshot()));
  const Labels labels = {{"bobbin_executor", "reports"}};
  EXPECT_EQ(text.Value("bobbin_task_queue_depth", labels), 0);
  EXPECT_EQ(text.Value("bobbin_task_submitted_total", labels), 2);
  EXPECT_EQ(text.Value("bobbin_task_completed_total", labels), 1);
  EXPECT_EQ(text.Value("bobbin_task_failed_total", labels), 1);
}

// As below, for executors.
TEST(PrometheusTest, EveryStatisticOfAnExecutorComesOut) {
  static_assert(sizeof(ExecutorStatistics) == 17 * 8, "a new field is added to AddStatistics");
  ExecutorStatistics all;
  double next = 1000;
  std::set<double> expected;
  for (uint64_t* field :
       {&all.queued, &all.delayed, &all.active, &all.submitted, &all.completed, &all.failed,
        &all.rejected, &all.dropped, &all.abandoned, &all.retried, &all.uncaught, &all.timed}) {
    expected.insert(++next);
    *field = static_cast<uint64_t>(next);
  }
  for (std::chrono::nanoseconds* field :
       {&all.wait_total, &all.wait_max, &all.run_total, &all.run_max}) {
    expected.insert(++next);
    *field = std::chrono::milliseconds(static_cast<int64_t>(next));
  }
  MetricsSnapshot snapshot;
  AddStatistics(snapshot, "x", all);
  std::set<double> written;
  for (const MetricSnapshot& metric : snapshot.metrics()) written.insert(metric.points.at(0).value);
  EXPECT_EQ(written, expected);
}

// A statistic that is added there must be added here. Each has a number of its own, and each number
// must come out.
TEST(PrometheusTest, EveryStatisticComesOut) {
  static_assert(sizeof(PlatformPoolStatistics) == 13 * 8 && sizeof(PollerStatistics) == 7 * 8 &&
                    sizeof(RuntimeStatistics) ==
                        29 * 8 + sizeof(PollerStatistics) + 2 * sizeof(PlatformPoolStatistics),
                "a new field is added to AddStatistics, and here");
  double next = 1000;
  std::set<double> expected;
  const auto number = [&] {
    expected.insert(++next);
    return static_cast<uint64_t>(next);
  };
  RuntimeStatistics all;
  for (uint64_t* field : {&all.fresh,
                          &all.ready,
                          &all.running,
                          &all.parked,
                          &all.spawned,
                          &all.started,
                          &all.ended,
                          &all.switches,
                          &all.parks,
                          &all.wakes,
                          &all.remote_wakes,
                          &all.yields,
                          &all.stolen,
                          &all.migrated,
                          &all.limited,
                          &all.waiting_for_limit,
                          &all.turns,
                          &all.sleeps,
                          &all.carrier_wakes,
                          &all.computing_holds,
                          &all.blocking_holds,
                          &all.held_carriers,
                          &all.deadlocks,
                          &all.timers,
                          &all.in_flight,
                          &all.sized_stacks,
                          &all.without_stack,
                          &all.stack_bytes,
                          &all.poller.early_submits,
                          &all.poller.deferred,
                          &all.poller.overflows,
                          &all.poller.memory_pauses,
                          &all.poller.accept_pauses,
                          &all.poller.small_queues,
                          &all.poller.copied_sends}) {
    *field = number();
  }
  all.stacks = all.sized_stacks + number();
  for (PlatformPoolStatistics* pool : {&all.blocking, &all.syncing}) {
    for (uint64_t* field :
         {&pool->threads, &pool->threads_peak, &pool->active, &pool->queued, &pool->completed,
          &pool->ran_by_caller, &pool->rejected, &pool->discarded, &pool->taken_back}) {
      *field = number();
    }
    for (std::chrono::nanoseconds* field :
         {&pool->wait_total, &pool->wait_max, &pool->run_total, &pool->run_max}) {
      *field = std::chrono::milliseconds(number());
    }
  }
  MetricsSnapshot snapshot;
  AddStatistics(snapshot, all);
  std::set<double> written;
  const Parser text(PrometheusText(snapshot));
  for (const auto& [name, family] : text.families()) {
    EXPECT_NE(family.help, "") << name;
    for (const Sample& sample : family.samples) written.insert(sample.value);
  }
  EXPECT_EQ(written, expected);
}

}  // namespace
}  // namespace bobbin
