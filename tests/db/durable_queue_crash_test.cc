// SPDX-License-Identifier: Apache-2.0
//
// Runners that are killed in the middle of their tasks.

#include <sched.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/db/durable_queue.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

#include "tests/db/crash.h"
#include "tests/db/each_database.h"
#include "tests/services/postgres_service.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/seed.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using test::AwaitTrue;
using test::Child;
using test::IsOkAndHolds;
using test::Journal;
using test::PostgresService;
using test::Rounds;

using OpenDatabase = std::function<std::unique_ptr<Database>()>;

void InRuntime(const std::function<void()>& body) {
  test::WithRuntime({.carriers = 2, .poller = io::AutoPoller()},
                    [&](Runtime& runtime) { EXPECT_OK(runtime.Spawn([&] { body(); }).Join()); });
}

// Tasks 1 to `tasks`. Those that are odd commit with their effect.
absl::Status EnqueueTasks(Database& database, int tasks) {
  BOBBIN_RETURN_IF_ERROR(database.ExecuteScript("create table effect(n integer)"));
  BOBBIN_ASSIGN_OR_RETURN(const DurableQueue queue, DurableQueue::Open(database));
  return database.Transact([&](Transaction& tx) -> absl::Status {
    for (int i = 1; i <= tasks; ++i) {
      const std::string payload = std::to_string(i);
      BOBBIN_RETURN_IF_ERROR(
          queue.Enqueue(tx, {.payload = payload, .priority = i % 3, .attempts_max = 1000000})
              .status());
    }
    return absl::OkStatus();
  });
}

QueueRunner::Body BodyWith(Database& database, Journal& journal) {
  return [&database, &journal](const QueueTask& task) -> absl::Status {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(std::string(task.payload()), &number)) {
      return absl::InvalidArgumentError("no number");
    }
    Yield();
    journal.Write(number);
    if (number % 2 == 0) return absl::OkStatus();
    return database.Transact([&](Transaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into effect values ($1)", number).status());
      return task.CompleteIn(tx);
    });
  };
}

// Each was run, and has had its effect once, if it commits with it.
void ExpectComplete(const OpenDatabase& open, const Journal& journal, int tasks) {
  const std::vector<uint64_t> numbers = journal.Read();
  EXPECT_EQ(std::set<uint64_t>(numbers.begin(), numbers.end()).size(), static_cast<size_t>(tasks));
  const std::unique_ptr<Database> database = open();
  const auto rows = database->Query("select count(*), count(distinct n) from effect");
  ASSERT_OK(rows);
  const int64_t odd = (tasks + 1) / 2;
  EXPECT_THAT((rows->Only<int64_t, int64_t>()), IsOkAndHolds(std::make_tuple(odd, odd)));
  EXPECT_THAT(database->Query("select count(*) from durable_queue")->Only<int64_t>(),
              IsOkAndHolds(0));
}

// Runs all there is. What somebody who was killed has claimed is his no longer, for there is nobody
// else.
absl::Status RunAll(const OpenDatabase& open, Journal& journal) {
  const std::unique_ptr<Database> database = open();
  BOBBIN_ASSIGN_OR_RETURN(const DurableQueue queue, DurableQueue::Open(*database));
  BOBBIN_RETURN_IF_ERROR(
      database->Execute("update durable_queue set due_at = 0 where owner <> ''").status());
  QueueRunner runner(queue, {.concurrency = 4, .lease = absl::Hours(1)},
                     BodyWith(*database, journal));
  VirtualThread thread = Spawn([&] { return runner.Run(); });
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const QueueCounts counts, queue.Count());
    const QueueRunnerStatistics statistics = runner.Statistics();
    if (counts.ready + counts.waiting + counts.running == 0) break;
    // A claim that a server has made for somebody who was dead by then.
    if (counts.ready + counts.waiting == 0 && statistics.running == 0) {
      BOBBIN_RETURN_IF_ERROR(
          database->Execute("update durable_queue set due_at = 0 where owner <> ''").status());
      runner.Ring();
    }
    BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::milliseconds(2)));
  }
  runner.Stop();
  BOBBIN_RETURN_IF_ERROR(thread.Join());
  return database->Close();
}

void KillRunners(const OpenDatabase& open) {
  test::Random random(test::Seed());
  Journal journal;
  const int kills = Rounds(100);
  const int tasks = kills * 8;
  InRuntime([&] { EXPECT_OK(EnqueueTasks(*open(), tasks)); });
  for (int i = 0; i < kills; ++i) {
    const size_t enough = journal.size() + random.Below(15);
    Child child([&] { return RunAll(open, journal); });
    while (journal.size() < enough && !child.HasEnded()) ::sched_yield();
    for (uint64_t spins = random.Below(2000); spins > 0; --spins) journal.size();
    child.Kill();
  }
  Child last([&] { return RunAll(open, journal); });
  EXPECT_EQ(last.Wait(), 0);
  InRuntime([&] { ExpectComplete(open, journal, tasks); });
}

TEST(DurableQueueCrashTest, KilledAHundredTimesOnPostgresEachTaskIsRunAndCommittedOnce) {
  std::optional<test::Schema> schema;
  InRuntime([&] { schema.emplace(); });
  const std::string conninfo = schema->conninfo();
  KillRunners([conninfo] { return test::OpenPostgres(conninfo, 6); });
  InRuntime([&] { schema.reset(); });
}

TEST(DurableQueueCrashTest, KilledAHundredTimesOnSqliteEachTaskIsRunAndCommittedOnce) {
  const test::SqliteFolder folder;
  KillRunners([path = folder.path()] { return test::OpenSqliteFile(path); });
}

TEST(DurableQueueCrashTest, AfterACrashOfTheServerTheRunnerGoesOn) {
  PostgresService service;
  // What was committed must outlive a crash of the server, as it does with a setting of its own.
  const std::string conninfo = service.conninfo() + " options='-c synchronous_commit=on'";
  const OpenDatabase open = [&] { return test::OpenPostgres(conninfo, 6); };
  Journal journal;
  constexpr int kTasks = 400;
  test::WithRuntime({.carriers = 2, .poller = io::AutoPoller()}, [&](Runtime& runtime) {
    std::unique_ptr<Database> database;
    std::unique_ptr<QueueRunner> runner;
    const auto run = [&](const std::function<absl::Status()>& body) {
      ASSERT_OK(runtime.Spawn([&] { return body(); }).Join());
    };
    run([&]() -> absl::Status {
      database = open();
      BOBBIN_RETURN_IF_ERROR(EnqueueTasks(*database, kTasks));
      BOBBIN_ASSIGN_OR_RETURN(const DurableQueue queue, DurableQueue::Open(*database));
      runner = std::make_unique<QueueRunner>(
          queue,
          QueueRunnerOptions{.concurrency = 4,
                             .backoff = {.first = absl::Milliseconds(1)},
                             .poll = absl::Milliseconds(20)},
          BodyWith(*database, journal));
      return absl::OkStatus();
    });
    VirtualThread thread = runtime.Spawn([&] { return runner->Run(); });
    for (const size_t enough : {size_t{50}, size_t{150}}) {
      AwaitTrue([&] { return journal.size() >= enough; });
      service.Kill();
      service.Resume();
    }
    // What has not been seen to end may have ended: the table knows.
    AwaitTrue([&] {
      int64_t left = -1;
      run([&]() -> absl::Status {
        const auto rows = database->Query("select count(*) from durable_queue");
        if (rows.ok()) left = rows->Only<int64_t>().value();
        return absl::OkStatus();
      });
      return left == 0;
    });
    runner->Stop();
    EXPECT_OK(thread.Join());
    run([&] {
      ExpectComplete(open, journal, kTasks);
      runner.reset();
      database.reset();
      return absl::OkStatus();
    });
  });
}

}  // namespace
}  // namespace bobbin::db
