// SPDX-License-Identifier: Apache-2.0

#include "sched/src/batcher.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin::internal {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::Le;

// What was written, by batches.
struct Written {
  std::vector<int> Items() {
    MutexLock lock(mutex);
    return items;
  }
  auto Writer() {
    return [this](std::vector<int>& batch, Event&) {
      MutexLock lock(mutex);
      batch_max = std::max(batch_max, batch.size());
      items.insert(items.end(), batch.begin(), batch.end());
      return absl::OkStatus();
    };
  }

  Mutex mutex;
  std::vector<int> items ABSL_GUARDED_BY(mutex);
  size_t batch_max ABSL_GUARDED_BY(mutex) = 0;
};

BOBBIN_TEST(BatcherTest, AFlushWritesWhatIsThereInOrder) {
  Written written;
  Batcher<int> batcher(
      {.name = "t", .queue_max = 10, .batch_max = 5, .interval = 1h, .stop_budget = 25s},
      written.Writer());
  for (int i = 0; i < 3; ++i) batcher.Add(i);
  ASSERT_OK(batcher.Flush());
  EXPECT_THAT(written.Items(), ElementsAre(0, 1, 2));
  ASSERT_OK(batcher.Flush());
  EXPECT_EQ(batcher.Statistics().written, 3u);
  EXPECT_EQ(batcher.Statistics().queued, 0u);
}

BOBBIN_TEST(BatcherTest, AFullBatchAndAnOldItemAreWrittenUnasked) {
  for (const auto& [batch_max, interval] :
       {std::pair<size_t, std::chrono::nanoseconds>(2, 1h), {10, 1ms}}) {
    Written written;
    Batcher<int> batcher({.name = "t",
                          .queue_max = 10,
                          .batch_max = batch_max,
                          .interval = interval,
                          .stop_budget = 25s},
                         written.Writer());
    batcher.Add(1);
    batcher.Add(2);
    while (batcher.Statistics().written < 2) Yield();
  }
}

BOBBIN_TEST(BatcherTest, WhatDoesNotFitIsDroppedAndCounted) {
  Event go_on;
  Event has_begun;
  Batcher<int> batcher(
      {.name = "t", .queue_max = 4, .batch_max = 4, .interval = 1ms, .stop_budget = 25s},
      [&](std::vector<int>&, Event&) {
        has_begun.Set();
        go_on.Wait().IgnoreError();
        return absl::OkStatus();
      });
  batcher.Add(0);
  ASSERT_OK(has_begun.Wait());
  for (int i = 0; i < 7; ++i) batcher.Add(i);  // Nobody waits.
  EXPECT_EQ(batcher.Statistics().dropped, 3u);
  EXPECT_EQ(batcher.Statistics().queued, 5u);
  go_on.Set();
  ASSERT_OK(batcher.Stop());
  EXPECT_EQ(batcher.Statistics().written, 5u);
  batcher.Add(1);
  EXPECT_EQ(batcher.Statistics().dropped, 4u);
}

BOBBIN_TEST(BatcherTest, WhatCannotBeWrittenIsCounted) {
  Batcher<int> batcher(
      {.name = "t", .queue_max = 4, .batch_max = 2, .interval = 1ms, .stop_budget = 25s},
      [](std::vector<int>&, Event&) { return absl::UnavailableError("x"); });
  for (int i = 0; i < 3; ++i) batcher.Add(i);
  ASSERT_OK(batcher.Flush());
  EXPECT_EQ(batcher.Statistics().failed, 3u);
}

BOBBIN_TEST(BatcherTest, AStopKeepsToItsBudget) {
  struct Shared {
    Event has_begun;
    Event go_on;
    Event has_ended;
  };
  // The thread is abandoned, with what it uses.
  const auto shared = std::make_shared<Shared>();
  {
    Batcher<int> batcher(
        {.name = "t", .queue_max = 8, .batch_max = 2, .interval = 1ms, .stop_budget = 1ms},
        [shared](std::vector<int>&, Event&) {
          shared->has_begun.Set();
          shared->go_on.Wait().IgnoreError();
          shared->has_ended.Set();
          return absl::OkStatus();
        });
    for (int i = 0; i < 5; ++i) batcher.Add(i);
    ASSERT_OK(shared->has_begun.Wait());
    EXPECT_THAT(batcher.Stop(), test::StatusIs(test::kDeadlineExceeded));
    EXPECT_EQ(batcher.Statistics().dropped, 5u);
    EXPECT_EQ(batcher.Statistics().queued, 0u);
    ASSERT_OK(batcher.Flush());  // There is nothing left to wait for.
  }
  shared->go_on.Set();
  ASSERT_OK(shared->has_ended.Wait());
}

BOBBIN_TEST(BatcherTest, AFlushThatIsCutShortReturns) {
  Event go_on;
  Batcher<int> batcher(
      {.name = "t", .queue_max = 8, .batch_max = 2, .interval = 1ms, .stop_budget = 25s},
      [&](std::vector<int>&, Event&) {
        go_on.Wait().IgnoreError();
        return absl::OkStatus();
      });
  batcher.Add(1);
  {
    const DeadlineScope scope(1ms);
    EXPECT_THAT(batcher.Flush(), test::StatusIs(test::kDeadlineExceeded));
  }
  go_on.Set();
}

// Adds, flushes and a stop meet at random; each item is written once, or counted as dropped.
BOBBIN_TEST(BatcherTest, NoItemIsLostOrWrittenTwice) {
  for (int round = 0; round < test::Rounds(50); ++round) {
    Written written;
    internal::Atomic<int> next{0};
    BatchStatistics statistics;
    {
      Batcher<int> batcher({.name = "t",
                            .queue_max = 1 + random().Below(20),
                            .batch_max = 1 + random().Below(8),
                            .interval = std::chrono::microseconds(random().Below(200)),
                            .stop_budget = 25s},
                           written.Writer());
      TaskGroup group;
      for (int i = 0; i < 4; ++i) {
        group.Spawn([&, own = random().Fork()]() mutable {
          for (int j = 0; j < 50; ++j) {
            batcher.Add(next.fetch_add(1));
            if (own.OneIn(8)) {
              EXPECT_OK(batcher.Flush());
            }
            if (own.OneIn(4)) Yield();
          }
        });
      }
      for (uint64_t i = random().Below(30); i > 0; --i) Yield();
      EXPECT_OK(batcher.Stop());
      ASSERT_OK(group.Wait());
      statistics = batcher.Statistics();
    }
    std::vector<int> items = written.Items();
    EXPECT_EQ(items.size(), statistics.written);
    EXPECT_EQ(statistics.written + statistics.dropped, 200u);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(std::adjacent_find(items.begin(), items.end()), items.end());
  }
}

}  // namespace
}  // namespace bobbin::internal
