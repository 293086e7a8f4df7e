// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/role.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/durable_queue.h>
#include <bobbin/db/pg_bell.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/each_database.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using test::AwaitTrue;
using test::IsOkAndHolds;
using test::OnEachDatabase;
using test::Rounds;
using test::Schema;
using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using How = Enqueued::How;

// What was run, in order.
class Lines {
 public:
  void Add(std::string_view text) {
    const MutexLock lock(mutex_);
    texts_.emplace_back(text);
  }
  std::vector<std::string> texts() const {
    const MutexLock lock(mutex_);
    return texts_;
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return texts_.size();
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
};

DurableQueue MustOpen(Database& database, DurableQueueOptions options = {}) {
  absl::StatusOr<DurableQueue> queue = DurableQueue::Open(database, std::move(options));
  BOBBIN_CHECK(queue.ok(), MessageOf(queue.status()));
  return *std::move(queue);
}

Enqueued Enqueue(Database& database, const DurableQueue& queue, const QueueEntry& entry) {
  const absl::StatusOr<Enqueued> enqueued = database.Transact(
      [&](Transaction& tx) -> absl::StatusOr<Enqueued> { return queue.Enqueue(tx, entry); });
  EXPECT_OK(enqueued);
  return enqueued.value_or(Enqueued{});
}

// Lets so much time go by for what waits in the table.
void Pass(Database& database, absl::Duration time) {
  EXPECT_OK(database.Execute("update durable_queue set due_at = due_at - $1",
                             absl::ToInt64Milliseconds(time)));
}

// A runner that runs until it ends, and does not look by itself.
class Running {
 public:
  Running(const DurableQueue& queue, QueueRunnerOptions options, QueueRunner::Body body)
      : runner_(queue, WithoutPoll(std::move(options)), std::move(body)),
        thread_(Spawn({.name = "runner"}, [this] { return runner_.Run(); })) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (thread_.is_joinable()) Stop();
  }

  QueueRunner& runner() { return runner_; }
  VirtualThread& thread() { return thread_; }
  QueueRunnerStatistics statistics() const { return runner_.Statistics(); }
  void Stop() {
    runner_.Stop();
    EXPECT_OK(thread_.Join());
  }

 private:
  static QueueRunnerOptions WithoutPoll(QueueRunnerOptions options) {
    options.poll = absl::Hours(1);
    return options;
  }

  QueueRunner runner_;
  VirtualThread thread_;
};

int64_t CountAll(const DurableQueue& queue) {
  const absl::StatusOr<QueueCounts> counts = queue.Count();
  EXPECT_OK(counts);
  return counts->ready + counts->waiting + counts->running + counts->done + counts->dead;
}

BOBBIN_EPOLL_TEST(DurableQueueTest, WhatWasCommittedIsRunAndWhatWasRolledBackIsNot) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    const std::string payload("a\0b\xff", 4);
    Enqueue(db, queue, {.payload = payload});
    EXPECT_THAT(db.Transact([&](Transaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(queue.Enqueue(tx, {.payload = "never"}).status());
      return absl::AbortedError("no");
    }),
                StatusIs(test::kAborted));
    Lines lines;
    Running running(queue, {}, [&](const QueueTask& task) {
      EXPECT_EQ(task.attempt(), 1);
      EXPECT_EQ(task.token(), 1);
      EXPECT_GT(task.created(), absl::FromUnixSeconds(1'700'000'000));
      lines.Add(task.payload());
      return absl::OkStatus();
    });
    AwaitTrue([&] { return running.statistics().completed == 1; });
    // It is told of commits.
    for (uint64_t i = 2; i < 6; ++i) {
      Enqueue(db, queue, {.payload = "more"});
      AwaitTrue([&] { return running.statistics().completed == i; });
    }
    running.Stop();
    EXPECT_THAT(lines.texts(), ElementsAre(payload, "more", "more", "more", "more"));
    EXPECT_EQ(CountAll(queue), 0);
    EXPECT_OK(running.runner().Run());
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, GreaterPrioritiesGoFirst) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Enqueue(db, queue, {.payload = "low", .priority = -1});
    Enqueue(db, queue, {.payload = "1"});
    Enqueue(db, queue, {.payload = "2"});
    Enqueue(db, queue, {.payload = "high", .priority = 7});
    // Others are not touched.
    const DurableQueue other = MustOpen(db, {.name = "other"});
    Enqueue(db, other, {.payload = "other", .priority = 100});
    Lines lines;
    Running running(queue, {.concurrency = 1}, [&](const QueueTask& task) {
      lines.Add(task.payload());
      return absl::OkStatus();
    });
    AwaitTrue([&] { return running.statistics().completed == 4; });
    EXPECT_THAT(lines.texts(), ElementsAre("high", "1", "2", "low"));
    EXPECT_EQ(CountAll(other), 1);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ATaskIsNotRunBeforeItsTime) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Enqueue(db, queue, {.payload = "later", .not_before = absl::Now() + absl::Hours(2)});
    Lines lines;
    Running running(queue, {}, [&](const QueueTask& task) {
      lines.Add(task.payload());
      return absl::OkStatus();
    });
    Enqueue(db, queue, {.payload = "now"});
    AwaitTrue([&] { return running.statistics().completed == 1; });
    EXPECT_EQ(queue.Count()->waiting, 1);
    Pass(db, absl::Hours(3));
    running.runner().Ring();
    AwaitTrue([&] { return running.statistics().completed == 2; });
    EXPECT_THAT(lines.texts(), ElementsAre("now", "later"));
    // It knows when the next one is due.
    Enqueue(db, queue, {.payload = "soon", .not_before = absl::Now() + absl::Milliseconds(20)});
    AwaitTrue([&] { return running.statistics().completed == 3; });
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, OneTaskHasAUniqueKeyAtATime) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    const Enqueued first = Enqueue(db, queue, {.payload = "1", .unique_key = "k"});
    EXPECT_EQ(first.how, How::kNew);
    const Enqueued second = Enqueue(db, queue, {.payload = "2", .unique_key = "k"});
    EXPECT_EQ(second.how, How::kWasThere);
    EXPECT_EQ(second.id, first.id);
    EXPECT_EQ(Enqueue(db, queue, {.payload = "3", .unique_key = "other"}).how, How::kNew);
    const DurableQueue elsewhere = MustOpen(db, {.name = "elsewhere"});
    EXPECT_EQ(Enqueue(db, elsewhere, {.unique_key = "k"}).how, How::kNew);

    Event go_on;
    Lines lines;
    Running running(queue, {}, [&](const QueueTask& task) {
      lines.Add(task.payload());
      return go_on.Wait();
    });
    AwaitTrue([&] { return lines.size() == 2; });
    EXPECT_EQ(Enqueue(db, queue, {.unique_key = "k"}).id, first.id);  // It is running.
    go_on.Set();
    AwaitTrue([&] { return running.statistics().completed == 2; });
    EXPECT_EQ(Enqueue(db, queue, {.payload = "4", .unique_key = "k"}).how, How::kNew);
    AwaitTrue([&] { return running.statistics().completed == 3; });
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, WhatFailsIsRunAgainAndThenADeadLetter) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Enqueue(db, queue, {.payload = "twice", .attempts_max = 3});
    Enqueue(db, queue, {.payload = "poison", .attempts_max = 2});
    Enqueue(db, queue, {.payload = "throw", .attempts_max = 1});
    Enqueue(db, queue, {.payload = "wrong"});
    std::atomic<bool> is_cured{false};
    Running running(queue, {.backoff = {.first = absl::Milliseconds(1)}},
                    [&](const QueueTask& task) -> absl::Status {
                      if (is_cured) return absl::OkStatus();
                      if (task.payload() == "twice" && task.attempt() == 2) return absl::OkStatus();
                      if (task.payload() == "throw") throw 1;
                      if (task.payload() == "wrong") return absl::InvalidArgumentError("no");
                      return absl::UnavailableError("it is poison");
                    });
    AwaitTrue([&] {
      const QueueRunnerStatistics statistics = running.statistics();
      return statistics.completed == 1 && statistics.dead == 3;
    });
    EXPECT_EQ(running.statistics().retried, 2U);
    auto dead = queue.List({.state = QueueState::kDead});
    ASSERT_OK(dead);
    ASSERT_EQ(dead->size(), 3U);
    EXPECT_EQ((*dead)[0].payload, "poison");
    EXPECT_EQ((*dead)[0].attempts, 2);
    EXPECT_THAT((*dead)[0].error, HasSubstr("it is poison"));
    EXPECT_THAT((*dead)[1].error, HasSubstr("exception"));
    EXPECT_EQ((*dead)[2].attempts, 1);  // Trying again would not have helped.
    is_cured = true;
    EXPECT_OK(queue.Revive((*dead)[0].id));
    AwaitTrue([&] { return running.statistics().completed == 2; });
    EXPECT_OK(queue.Remove((*dead)[1].id));
    EXPECT_THAT(queue.Remove((*dead)[1].id), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(queue.Revive((*dead)[1].id), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_EQ(CountAll(queue), 1);
  });
}

// --- Together with the body's own effects.

BOBBIN_EPOLL_TEST(DurableQueueTest, ABodyAndTheEndOfItsTaskAreCommittedTogether) {
  OnEachDatabase([](Database& db) {
    ASSERT_OK(db.ExecuteScript("create table effect(n integer)"));
    const DurableQueue queue = MustOpen(db);
    const auto count_effects = [&] {
      return db.Query("select count(*) from effect")->Only<int64_t>().value();
    };
    std::atomic<int> runs{0};
    Running running(
        queue, {.backoff = {.first = absl::Milliseconds(1)}}, [&](const QueueTask& task) {
          const int run = ++runs;
          absl::Status status = db.Transact([&](Transaction& tx) -> absl::Status {
            BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into effect values (1)").status());
            BOBBIN_RETURN_IF_ERROR(task.CompleteIn(tx));
            return run < 3 ? absl::UnavailableError("not yet") : absl::OkStatus();
          });
          // Whatever it says, a task whose end was rolled back has not ended.
          if (run == 1) return absl::OkStatus();
          // And one whose end was committed has.
          if (run == 3) return absl::UnavailableError("too late");
          return status;
        });
    Enqueue(db, queue, {});
    AwaitTrue([&] { return running.statistics().completed == 1; });
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(count_effects(), 1);
    EXPECT_EQ(running.statistics().retried, 2U);
    EXPECT_EQ(CountAll(queue), 0);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ARunThatHasLostItsLeaseCannotComplete) {
  OnEachDatabase([](Database& db) {
    ASSERT_OK(db.ExecuteScript("create table effect(run integer)"));
    const DurableQueue queue = MustOpen(db);
    std::atomic<int> runs{0};
    Event go_on;
    absl::Status refused;
    const auto body = [&](const QueueTask& task) -> absl::Status {
      const int run = ++runs;
      // The first one sleeps until the second one is done.
      if (run == 1) BOBBIN_RETURN_IF_ERROR(go_on.Wait());
      absl::Status status = db.Transact([&](Transaction& tx) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into effect values ($1)", run).status());
        return task.CompleteIn(tx);
      });
      if (run == 1) refused = status;
      EXPECT_EQ(task.token(), run);
      return status;
    };
    // It has no place for what it has lost.
    Running first(queue, {.concurrency = 1, .lease = absl::Hours(1)}, body);
    Enqueue(db, queue, {});
    AwaitTrue([&] { return runs == 1; });
    Pass(db, absl::Hours(2));
    {
      Running second(queue, {.lease = absl::Hours(1)}, body);
      AwaitTrue([&] { return second.statistics().completed == 1; });
    }
    go_on.Set();
    first.Stop();
    EXPECT_THAT(refused, StatusIs(test::kAborted));
    EXPECT_EQ(first.statistics().lost, 1U);
    EXPECT_THAT(db.Query("select run from effect")->Only<int64_t>(), IsOkAndHolds(2));
  });
}

// --- Leases.

BOBBIN_EPOLL_TEST(DurableQueueTest, ARunnerMayGetBackWhatItHasLost) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event never;
    std::atomic<int> begun{0};
    std::atomic<int> stopped{0};
    Running running(queue, {.lease = absl::Hours(1)}, [&](const QueueTask& task) {
      ++begun;
      if (task.token() > 1) return absl::OkStatus();
      absl::Status status = never.Wait();
      ++stopped;
      return status;
    });
    Enqueue(db, queue, {});
    AwaitTrue([&] { return begun == 1; });
    Pass(db, absl::Hours(2));
    running.runner().Ring();
    AwaitTrue([&] { return running.statistics().completed == 1 && stopped == 1; });
    running.Stop();
    EXPECT_EQ(running.statistics().lost, 1U);
    EXPECT_EQ(CountAll(queue), 0);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ALostLeaseStopsTheBody) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    std::atomic<int> begun{0};
    std::atomic<int> stopped{0};
    Event never;
    Running running(queue, {.lease = absl::Milliseconds(150)}, [&](const QueueTask& task) {
      ++begun;
      absl::Status status = never.Wait();
      EXPECT_TRUE(task.stop().IsSet());
      EXPECT_THAT(status, StatusIs(test::kCancelled));
      ++stopped;
      return status;
    });
    Enqueue(db, queue, {});
    AwaitTrue([&] { return begun > 0; });
    // Somebody else has it.
    EXPECT_OK(db.Execute(
        "update durable_queue set owner = 'other', token = token + 1, due_at = due_at + 3600000"));
    // A machine that stands still may have lost others, before.
    AwaitTrue([&] {
      const QueueRunnerStatistics statistics = running.statistics();
      return stopped > 0 && statistics.running == 0 && statistics.lost > 0;
    });
    running.Stop();
    EXPECT_EQ(queue.Count()->running, 1);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ALeaseIsExtendedWhileTheBodyRuns) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event go_on;
    std::atomic<bool> has_begun{false};
    Running running(queue, {.lease = absl::Milliseconds(300)}, [&](const QueueTask&) {
      has_begun = true;
      return go_on.Wait();
    });
    Enqueue(db, queue, {});
    AwaitTrue([&] { return has_begun.load(); });
    const auto due = [&] {
      const auto tasks = queue.List();
      EXPECT_OK(tasks);
      return tasks->empty() ? absl::InfinitePast() : tasks->front().due;
    };
    for (int i = 0; i < 2; ++i) {
      const absl::Time before = due();
      AwaitTrue([&] { return due() > before; });
    }
    go_on.Set();
    AwaitTrue([&] { return running.statistics().completed == 1; });
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ARunThatTakesItsProcessWithItCountsAsOne) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event go_on;
    std::atomic<int> begun{0};
    // As a process that has died: it keeps what it has claimed, and says nothing more.
    Running dead(queue, {.concurrency = 2, .lease = absl::Hours(1)}, [&](const QueueTask&) {
      ++begun;
      return go_on.Wait();
    });
    Enqueue(db, queue, {.payload = "poison", .attempts_max = 1});
    Enqueue(db, queue, {.payload = "good", .attempts_max = 2});
    AwaitTrue([&] { return begun == 2; });
    Pass(db, absl::Hours(2));
    Lines lines;
    Running running(queue, {}, [&](const QueueTask& task) {
      EXPECT_EQ(task.attempt(), 2);
      lines.Add(task.payload());
      return absl::OkStatus();
    });
    AwaitTrue([&] {
      const QueueRunnerStatistics statistics = running.statistics();
      return statistics.completed == 1 && statistics.dead == 1;
    });
    EXPECT_THAT(lines.texts(), ElementsAre("good"));
    EXPECT_THAT(queue.List({.state = QueueState::kDead})->front().error, HasSubstr("lease"));
    go_on.Set();
    dead.Stop();
    EXPECT_EQ(dead.statistics().lost, 2U);
  });
}

// --- Stopping.

BOBBIN_EPOLL_TEST(DurableQueueTest, AStopLetsBodiesEnd) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event has_begun;
    Event go_on;
    Running running(queue, {.concurrency = 1, .stop_budget = std::chrono::hours(1)},
                    [&](const QueueTask&) {
                      has_begun.Set();
                      return go_on.Wait();
                    });
    Enqueue(db, queue, {.payload = "1"});
    Enqueue(db, queue, {.payload = "2"});
    ASSERT_OK(has_begun.Wait());
    running.runner().Stop();
    go_on.Set();
    EXPECT_OK(running.thread().Join());
    EXPECT_EQ(running.statistics().completed, 1U);
    EXPECT_EQ(queue.Count()->ready, 1);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ACancelStopsBodiesAndGivesTheirTasksBack) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event has_begun;
    Event never;
    Running running(queue, {.lease = absl::Hours(1), .stop_budget = std::chrono::hours(1)},
                    [&](const QueueTask&) {
                      has_begun.Set();
                      return never.Wait();
                    });
    Enqueue(db, queue, {});
    ASSERT_OK(has_begun.Wait());
    running.thread().Cancel();
    EXPECT_THAT(running.thread().Join(), StatusIs(test::kCancelled));
    EXPECT_EQ(running.statistics().given_back, 1U);
    // At once, not when the lease is over; and it does not count as an attempt.
    const auto tasks = queue.List();
    ASSERT_OK(tasks);
    EXPECT_EQ(tasks->front().state, QueueState::kReady);
    EXPECT_EQ(tasks->front().attempts, 0);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, AStopKeepsToItsBudgetAndNamesWhoDoesNotEnd) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event has_begun;
    Event go_on;
    std::atomic<bool> has_ended{false};
    {
      Running running(queue, {.stop_budget = std::chrono::milliseconds(20)},
                      [&](const QueueTask&) -> absl::Status {
                        has_begun.Set();
                        const CancelShield deaf;
                        BOBBIN_RETURN_IF_ERROR(go_on.Wait());
                        has_ended = true;
                        return absl::OkStatus();
                      });
      const Enqueued task = Enqueue(db, queue, {});
      ASSERT_OK(has_begun.Wait());
      running.runner().Stop();
      const absl::Status stopped = running.thread().Join();
      EXPECT_THAT(stopped, StatusIs(test::kDeadlineExceeded));
      EXPECT_THAT(std::string(MessageOf(stopped)), HasSubstr(std::to_string(task.id)));
    }
    // It ends by itself, and its end is written down.
    EXPECT_FALSE(has_ended);
    go_on.Set();
    AwaitTrue([&] { return CountAll(queue) == 0; });
    EXPECT_OK(CurrentExecutors().AwaitIdle());
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, BodiesRunOnPlatformThreadsIfTheyAreTo) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event has_begun;
    Running running(queue,
                    {.executor = "blocking-tasks",
                     .thread = ThreadKind::kPlatform,
                     .stop_budget = std::chrono::hours(1)},
                    [&](const QueueTask& task) -> absl::Status {
                      EXPECT_EQ(CurrentRole(), Role::kPlatform);
                      if (task.payload() == "short") return absl::OkStatus();
                      has_begun.Set();
                      BOBBIN_RETURN_IF_ERROR(task.stop().Wait());
                      return absl::CancelledError("it was to stop");
                    });
    Enqueue(db, queue, {.payload = "short"});
    AwaitTrue([&] { return running.statistics().completed == 1; });
    Enqueue(db, queue, {.payload = "long"});
    ASSERT_OK(has_begun.Wait());
    running.thread().Cancel();
    EXPECT_THAT(running.thread().Join(), StatusIs(test::kCancelled));
    EXPECT_EQ(running.statistics().given_back, 1U);
    EXPECT_EQ(queue.Count()->ready, 1);
    QueueRunner wrong(queue, {.executor = "blocking-tasks", .thread = ThreadKind::kVirtual},
                      [](const QueueTask&) { return absl::OkStatus(); });
    EXPECT_THAT(wrong.Run(), StatusIs(test::kFailedPrecondition));
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, ABodyThatRunsTooLongIsCutShort) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    Event never;
    Running running(queue, {.run_max = absl::Milliseconds(5)},
                    [&](const QueueTask&) { return never.Wait(); });
    Enqueue(db, queue, {.attempts_max = 1});
    AwaitTrue([&] { return running.statistics().dead == 1; });
    EXPECT_THAT(queue.List()->front().error, HasSubstr("DEADLINE_EXCEEDED"));
  });
}

// --- What can be seen.

BOBBIN_EPOLL_TEST(DurableQueueTest, ItsTasksAndNumbersCanBeSeen) {
  OnEachDatabase([](Database& db) {
    Metrics metrics;
    const DurableQueue queue = MustOpen(db, {.name = "mail"});
    Event has_begun;
    Event go_on;
    {
      Running running(queue, {.keep_done = absl::Hours(1), .metrics = &metrics},
                      [&](const QueueTask& task) -> absl::Status {
                        if (task.payload() == "bad") return absl::InvalidArgumentError("no");
                        has_begun.Set();
                        return go_on.Wait();
                      });
      Enqueue(db, queue, {.payload = "bad"});
      AwaitTrue([&] { return running.statistics().dead == 1; });
      Enqueue(db, queue, {.payload = "run", .priority = 3, .unique_key = "k"});
      ASSERT_OK(has_begun.Wait());
      Enqueue(db, queue, {.payload = "late", .not_before = absl::Now() + absl::Hours(5)});
      const auto tasks = queue.List();
      ASSERT_OK(tasks);
      ASSERT_EQ(tasks->size(), 3U);
      EXPECT_EQ((*tasks)[0].state, QueueState::kDead);
      EXPECT_EQ((*tasks)[1].state, QueueState::kRunning);
      EXPECT_EQ((*tasks)[1].priority, 3);
      EXPECT_EQ((*tasks)[1].attempts, 1);
      EXPECT_EQ((*tasks)[1].unique_key, "k");
      EXPECT_NE((*tasks)[1].owner, "");
      EXPECT_EQ((*tasks)[2].state, QueueState::kWaiting);
      EXPECT_EQ(queue.List({.state = QueueState::kWaiting})->size(), 1U);
      EXPECT_EQ(queue.List({.count_max = 2})->size(), 2U);
      EXPECT_THAT(queue.Remove((*tasks)[1].id), StatusIs(test::kFailedPrecondition));
      EXPECT_OK(queue.Remove((*tasks)[2].id));
      EXPECT_EQ(running.statistics().running, 1U);
      go_on.Set();
      AwaitTrue([&] { return running.statistics().completed == 1; });
      const MetricsSnapshot snapshot = metrics.Snapshot();
      const std::vector<Attribute> which = {{"queue", "mail"}};
      EXPECT_EQ(snapshot.Value("bobbin.queue.completed", which), 1);
      EXPECT_EQ(snapshot.Value("bobbin.queue.dead", which), 1);
    }
    EXPECT_EQ(queue.Count()->done, 1);
    EXPECT_EQ(queue.Count()->dead, 1);
    // What was kept for long enough goes.
    Pass(db, absl::Hours(2));
    const Running later(queue, {.keep_done = absl::Hours(1)},
                        [](const QueueTask&) { return absl::OkStatus(); });
    AwaitTrue([&] { return queue.Count()->done == 0; });
    EXPECT_EQ(QueueStateName(QueueState::kRunning), "running");
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, NamesAreCheckedAndTablesAreMadeOnce) {
  OnEachDatabase([](Database& db) {
    EXPECT_THAT(DurableQueue::Open(db, {.name = ""}).status(), StatusIs(test::kInvalidArgument));
    EXPECT_THAT(DurableQueue::Open(db, {.table = "a;b"}).status(),
                StatusIs(test::kInvalidArgument));
    EXPECT_THAT(DurableQueue::Open(db, {.channel = "a b"}).status(),
                StatusIs(test::kInvalidArgument));
    TaskGroup group;
    for (int i = 0; i < 6; ++i) {
      group.Spawn([&] { return DurableQueue::Open(db, {.table = "chores"}).status(); });
    }
    EXPECT_OK(group.Wait());
    EXPECT_OK(db.Query("select id, queue, payload, unique_key from chores"));
  });
}

// --- PostgreSQL.

BOBBIN_IO_TEST(DurableQueueTest, ARunnerOfAnotherProcessIsNotified) {
  const Schema schema;
  PgPool here = schema.Open();
  PgPool there = schema.Open();
  const DurableQueue queue = MustOpen(here, {.channel = schema.name()});
  const DurableQueue same = MustOpen(there);
  Running running(same, {}, [](const QueueTask&) { return absl::OkStatus(); });
  const absl::StatusOr<PgBell> bell = PgBell::Start({.conninfo = schema.conninfo()}, schema.name(),
                                                    [&] { running.runner().Ring(); });
  ASSERT_OK(bell);
  for (uint64_t i = 1; i <= 5; ++i) {
    Enqueue(here, queue, {});
    AwaitTrue([&] { return running.statistics().completed == i; });
  }
}

// --- Many at once.

BOBBIN_IO_TEST(DurableQueueTest, RunnersShareTheWorkAndEachTaskIsRunOnce) {
  OnEachDatabase([](Database& db) {
    ASSERT_OK(db.ExecuteScript("create table effect(n integer)"));
    const DurableQueue queue = MustOpen(db);
    const int tasks = Rounds(60);
    const auto body = [&](const QueueTask& task) {
      Yield();
      return db.Transact([&](Transaction& tx) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(
            tx.Execute("insert into effect values ($1)", std::stoi(std::string(task.payload())))
                .status());
        return task.CompleteIn(tx);
      });
    };
    std::vector<std::unique_ptr<Running>> runners;
    for (int i = 0; i < 3; ++i) {
      runners.push_back(std::make_unique<Running>(
          queue, QueueRunnerOptions{.concurrency = 2, .lease = absl::Hours(1)}, body));
    }
    for (int i = 0; i < tasks; ++i) {
      const std::string payload = std::to_string(i);
      Enqueue(db, queue, {.payload = payload});
    }
    const auto completed = [&] {
      uint64_t sum = 0;
      for (const auto& each : runners) sum += each->statistics().completed;
      return sum;
    };
    AwaitTrue([&] { return completed() == static_cast<uint64_t>(tasks); });
    runners.clear();
    const auto rows = db.Query("select count(*), count(distinct n) from effect");
    ASSERT_OK(rows);
    EXPECT_THAT((rows->Only<int64_t, int64_t>()),
                IsOkAndHolds(std::make_tuple(int64_t{tasks}, int64_t{tasks})));
    EXPECT_EQ(CountAll(queue), 0);
  });
}

BOBBIN_EPOLL_TEST(DurableQueueTest, OfThoseWhoEnqueueAUniqueKeyOneIsFirst) {
  OnEachDatabase([](Database& db) {
    const DurableQueue queue = MustOpen(db);
    for (int round = 0; round < Rounds(10); ++round) {
      const std::string key = std::to_string(round);
      std::atomic<int> fresh{0};
      Mutex mutex;
      std::set<int64_t> ids;
      TaskGroup group;
      for (int i = 0; i < 5; ++i) {
        group.Spawn([&] {
          const Enqueued enqueued = Enqueue(db, queue, {.unique_key = key});
          if (enqueued.how == How::kNew) ++fresh;
          const MutexLock lock(mutex);
          ids.insert(enqueued.id);
        });
      }
      EXPECT_OK(group.Wait());
      EXPECT_EQ(fresh, 1);
      EXPECT_EQ(ids.size(), 1U);
    }
  });
}

}  // namespace
}  // namespace bobbin::db
