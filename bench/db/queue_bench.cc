// SPDX-License-Identifier: Apache-2.0
//
// Outbox and durable queue: messages and tasks a second, beside the plain SQL that does the same
// without leases, retries and order: one that inserts a row in a transaction, and one that takes a
// batch of rows with SKIP LOCKED, and deletes them, in one transaction.
//
// The server is the one that the environment's BOBBIN_BENCH_POSTGRES names, or else one of this
// program's own; the SQLite file is in the temporary folder. Each iteration is kMessages of them.

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/db/durable_queue.h>
#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/spawn.h>

#include "bench/support/on_virtual_thread.h"
#include "tests/services/postgres_service.h"

namespace bobbin::bench {
namespace {

constexpr int kMessages = 1000;
constexpr int kBatch = 100;
constexpr std::string_view kPayload = R"({"order":17,"items":["a","b","c"],"total":"99.50"})";

void Must(const absl::Status& status) { BOBBIN_CHECK(status.ok(), MessageOf(status)); }
template <typename T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

// Calls `body` with an empty database.
void WithDatabase(db::Dialect dialect, const std::function<void(db::Database&)>& body) {
  OnVirtualThread({.poller = io::AutoPoller()}, [&] {
    if (dialect == db::Dialect::kSqlite) {
      std::string folder =
          (std::filesystem::temp_directory_path() / "bobbin-bench-XXXXXX").string();
      BOBBIN_CHECK(::mkdtemp(folder.data()) != nullptr, "no folder can be made");
      {
        db::Sqlite sqlite = Must(db::Sqlite::Open(
            {.path = folder + "/queue.db", .durability = db::SqliteDurability::kSinceCheckpoint}));
        body(sqlite);
      }
      std::filesystem::remove_all(folder);
      return;
    }
    const char* const given = std::getenv("BOBBIN_BENCH_POSTGRES");
    const std::string conninfo =
        given != nullptr ? std::string(given) : test::PostgresService::SharedConninfo();
    const std::string schema = "queue_bench_" + std::to_string(::getpid());
    db::PgPool pool = Must(db::PgPool::Open(
        {.server = {.conninfo = conninfo + " options='-c search_path=" + schema + "'"}}));
    Must(pool.ExecuteScript(db::UncheckedSql("create schema " + schema)));
    body(pool);
    Must(pool.ExecuteScript(db::UncheckedSql("drop schema " + schema + " cascade")));
  });
}

void Count(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kMessages);
}

// --- Adding: a transaction of one row each.

void AddPlain(benchmark::State& state, db::Dialect dialect) {
  WithDatabase(dialect, [&](db::Database& database) {
    Must(database.ExecuteScript("create table plain(topic text, payload text)"));
    for ([[maybe_unused]] auto _ : state) {
      for (int i = 0; i < kMessages; ++i) {
        Must(database.Transact([](db::Transaction& transaction) {
          return transaction.Execute("insert into plain values ($1, $2)", "orders", kPayload)
              .status();
        }));
      }
    }
  });
  Count(state);
}

void AddToOutbox(benchmark::State& state, db::Dialect dialect) {
  WithDatabase(dialect, [&](db::Database& database) {
    const db::Outbox outbox = Must(db::Outbox::Open(database));
    for ([[maybe_unused]] auto _ : state) {
      for (int i = 0; i < kMessages; ++i) {
        const std::string key = std::to_string(i);
        Must(database.Transact([&](db::Transaction& transaction) {
          return outbox.Add(transaction, {.topic = "orders", .key = key, .payload = kPayload})
              .status();
        }));
      }
    }
  });
  Count(state);
}

void Enqueue(benchmark::State& state, db::Dialect dialect) {
  WithDatabase(dialect, [&](db::Database& database) {
    const db::DurableQueue queue = Must(db::DurableQueue::Open(database));
    for ([[maybe_unused]] auto _ : state) {
      for (int i = 0; i < kMessages; ++i) {
        Must(database.Transact([&](db::Transaction& transaction) {
          return queue.Enqueue(transaction, {.payload = kPayload}).status();
        }));
      }
    }
  });
  Count(state);
}

// --- Taking out what is there.

void TakePlain(benchmark::State& state, db::Dialect dialect) {
  WithDatabase(dialect, [&](db::Database& database) {
    const std::string key = dialect == db::Dialect::kPostgres
                                ? "bigint generated always as identity primary key"
                                : "integer primary key";
    Must(database.ExecuteScript(
        db::UncheckedSql("create table plain(id " + key + ", topic text, payload text)")));
    const std::string take =
        std::string("delete from plain where id in (select id from plain order by id limit 100 ") +
        (dialect == db::Dialect::kPostgres ? "for update skip locked)" : ")") +
        " returning id, topic, payload";
    for ([[maybe_unused]] auto _ : state) {
      state.PauseTiming();
      Must(database.Transact([](db::Transaction& transaction) -> absl::Status {
        for (int i = 0; i < kMessages; ++i) {
          BOBBIN_RETURN_IF_ERROR(
              transaction
                  .Execute("insert into plain(topic, payload) values ($1, $2)", "orders", kPayload)
                  .status());
        }
        return absl::OkStatus();
      }));
      state.ResumeTiming();
      for (int taken = 0; taken < kMessages; taken += kBatch) {
        Must(database.Transact([&](db::Transaction& transaction) -> absl::Status {
          BOBBIN_ASSIGN_OR_RETURN(const db::Rows rows, transaction.Query(db::UncheckedSql(take)));
          for (size_t i = 0; i < rows.size(); ++i) {
            benchmark::DoNotOptimize(Must(rows[i].Get<std::string>(2)));
          }
          return absl::OkStatus();
        }));
      }
    }
  });
  Count(state);
}

// `keys`: of how many the messages are; 0: they have none.
void Relay(benchmark::State& state, db::Dialect dialect, int keys) {
  WithDatabase(dialect, [&](db::Database& database) {
    const db::Outbox outbox = Must(db::Outbox::Open(database));
    db::OutboxRelay relay(outbox, {.batch = kBatch}, [](const db::OutboxMessage& message) {
      benchmark::DoNotOptimize(message.payload.size());
      return absl::OkStatus();
    });
    for ([[maybe_unused]] auto _ : state) {
      state.PauseTiming();
      Must(database.Transact([&](db::Transaction& transaction) -> absl::Status {
        for (int i = 0; i < kMessages; ++i) {
          const std::string key = keys == 0 ? "" : std::to_string(i % keys);
          BOBBIN_RETURN_IF_ERROR(
              outbox.Add(transaction, {.topic = "orders", .key = key, .payload = kPayload})
                  .status());
        }
        return absl::OkStatus();
      }));
      state.ResumeTiming();
      const int64_t sent = Must(relay.SendDue());
      BOBBIN_CHECK(sent == kMessages, "all are sent");
    }
  });
  Count(state);
}

enum class Ending { kByItself, kWithBody };

void RunTasks(benchmark::State& state, db::Dialect dialect, Ending ending) {
  WithDatabase(dialect, [&](db::Database& database) {
    const db::DurableQueue queue = Must(db::DurableQueue::Open(database));
    for ([[maybe_unused]] auto _ : state) {
      state.PauseTiming();
      Must(database.Transact([&](db::Transaction& transaction) -> absl::Status {
        for (int i = 0; i < kMessages; ++i) {
          BOBBIN_RETURN_IF_ERROR(queue.Enqueue(transaction, {.payload = kPayload}).status());
        }
        return absl::OkStatus();
      }));
      state.ResumeTiming();
      internal::Atomic<int> runs{0};
      Event are_over;
      db::QueueRunner runner(queue, {.concurrency = 32}, [&](const db::QueueTask& task) {
        if (runs.fetch_add(1) + 1 == kMessages) are_over.Set();
        if (ending == Ending::kByItself) return absl::OkStatus();
        return database.Transact(
            [&](db::Transaction& transaction) { return task.CompleteIn(transaction); });
      });
      VirtualThread thread = Spawn([&] { return runner.Run(); });
      Must(are_over.Wait());
      runner.Stop();
      Must(thread.Join());
    }
  });
  Count(state);
}

BENCHMARK_CAPTURE(AddPlain, postgres, db::Dialect::kPostgres)
    ->Name("Queue/Postgres/Add/Plain")
    ->UseRealTime();
BENCHMARK_CAPTURE(AddPlain, sqlite, db::Dialect::kSqlite)
    ->Name("Queue/Sqlite/Add/Plain")
    ->UseRealTime();
BENCHMARK_CAPTURE(AddToOutbox, postgres, db::Dialect::kPostgres)
    ->Name("Queue/Postgres/Add/Outbox")
    ->UseRealTime();
BENCHMARK_CAPTURE(AddToOutbox, sqlite, db::Dialect::kSqlite)
    ->Name("Queue/Sqlite/Add/Outbox")
    ->UseRealTime();
BENCHMARK_CAPTURE(Enqueue, postgres, db::Dialect::kPostgres)
    ->Name("Queue/Postgres/Add/Queue")
    ->UseRealTime();
BENCHMARK_CAPTURE(Enqueue, sqlite, db::Dialect::kSqlite)
    ->Name("Queue/Sqlite/Add/Queue")
    ->UseRealTime();
BENCHMARK_CAPTURE(TakePlain, postgres, db::Dialect::kPostgres)
    ->Name("Queue/Postgres/Take/Plain")
    ->UseRealTime();
BENCHMARK_CAPTURE(TakePlain, sqlite, db::Dialect::kSqlite)
    ->Name("Queue/Sqlite/Take/Plain")
    ->UseRealTime();
BENCHMARK_CAPTURE(Relay, postgres_free, db::Dialect::kPostgres, 0)
    ->Name("Queue/Postgres/Take/Outbox")
    ->UseRealTime();
BENCHMARK_CAPTURE(Relay, postgres_keys, db::Dialect::kPostgres, 50)
    ->Name("Queue/Postgres/Take/OutboxOf50Keys")
    ->UseRealTime();
BENCHMARK_CAPTURE(Relay, sqlite_free, db::Dialect::kSqlite, 0)
    ->Name("Queue/Sqlite/Take/Outbox")
    ->UseRealTime();
BENCHMARK_CAPTURE(Relay, sqlite_keys, db::Dialect::kSqlite, 50)
    ->Name("Queue/Sqlite/Take/OutboxOf50Keys")
    ->UseRealTime();
BENCHMARK_CAPTURE(RunTasks, postgres, db::Dialect::kPostgres, Ending::kByItself)
    ->Name("Queue/Postgres/Take/Queue")
    ->UseRealTime();
BENCHMARK_CAPTURE(RunTasks, postgres_with, db::Dialect::kPostgres, Ending::kWithBody)
    ->Name("Queue/Postgres/Take/QueueWithBody")
    ->UseRealTime();
BENCHMARK_CAPTURE(RunTasks, sqlite, db::Dialect::kSqlite, Ending::kByItself)
    ->Name("Queue/Sqlite/Take/Queue")
    ->UseRealTime();
BENCHMARK_CAPTURE(RunTasks, sqlite_with, db::Dialect::kSqlite, Ending::kWithBody)
    ->Name("Queue/Sqlite/Take/QueueWithBody")
    ->UseRealTime();

}  // namespace
}  // namespace bobbin::bench
