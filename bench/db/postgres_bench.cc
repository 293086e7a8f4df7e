// SPDX-License-Identifier: Apache-2.0
//
// PostgreSQL: statements a second of 64 virtual threads that share 8 connections, beside those of 8
// OS threads with a connection of libpq's each, which block. Pipeline is the same statement, a
// hundred times in one round trip, beside one at a time on the same one connection.
//
// The server is the one that the environment's BOBBIN_BENCH_POSTGRES names, a conninfo of libpq's,
// or else one of this program's own. It takes most of the CPU time either way.

#include <libpq-fe.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"
#include "tests/services/postgres_service.h"

namespace bobbin::bench {
namespace {

constexpr int kConnections = 8;
constexpr int kVirtualThreads = 64;
constexpr int kStatements = 6400;  // Of one iteration.
constexpr int kPipelined = 100;

constexpr char kOneRow[] = "select 1";
constexpr char kTenRows[] =
    "select i, i * 2.5::float8, 'row number ' || i from generate_series(1, 10) i";

const std::string& Conninfo() {
  static const std::string conninfo = [] {
    const char* const given = std::getenv("BOBBIN_BENCH_POSTGRES");
    return given != nullptr ? std::string(given) : test::PostgresService::SharedConninfo();
  }();
  return conninfo;
}

db::PgPool OpenPool(size_t connections) {
  auto pool =
      db::PgPool::Open({.server = {.conninfo = Conninfo()}, .connections_max = connections});
  BOBBIN_CHECK(pool.ok(), MessageOf(pool.status()));
  return *std::move(pool);
}

void CountStatements(benchmark::State& state, int64_t statements) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * statements);
}

// --- libpq, which blocks.

class BlockingConnection {
 public:
  explicit BlockingConnection(const char* sql) : connection_(PQconnectdb(Conninfo().c_str())) {
    BOBBIN_CHECK(PQstatus(connection_) == CONNECTION_OK, PQerrorMessage(connection_));
    PQclear(PQprepare(connection_, "statement", sql, 0, nullptr));
  }
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;
  ~BlockingConnection() { PQfinish(connection_); }

  // Reads each value, as whoever asks for them does.
  void Run() {
    PGresult* const result =
        PQexecPrepared(connection_, "statement", 0, nullptr, nullptr, nullptr, 0);
    BOBBIN_CHECK(PQresultStatus(result) == PGRES_TUPLES_OK, PQerrorMessage(connection_));
    for (int row = 0; row < PQntuples(result); ++row) {
      for (int column = 0; column < PQnfields(result); ++column) {
        benchmark::DoNotOptimize(PQgetvalue(result, row, column));
      }
    }
    PQclear(result);
  }

 private:
  PGconn* const connection_;
};

void OsThreads(benchmark::State& state, const char* sql) {
  std::vector<std::unique_ptr<BlockingConnection>> connections;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(std::make_unique<BlockingConnection>(sql));
  }
  for ([[maybe_unused]] auto _ : state) {
    std::vector<std::thread> threads;
    for (const auto& connection : connections) {
      threads.emplace_back([&connection] {
        for (int i = 0; i < kStatements / kConnections; ++i) connection->Run();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CountStatements(state, kStatements);
}
BENCHMARK_CAPTURE(OsThreads, one_row, kOneRow)
    ->Name("Postgres/OsThreads/OneRow")
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(OsThreads, ten_rows, kTenRows)
    ->Name("Postgres/OsThreads/TenRows")
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// --- Virtual threads.

template <size_t kBytes>
void VirtualThreads(benchmark::State& state, const char (&sql)[kBytes]) {
  OnVirtualThread({.poller = io::AutoPoller()}, [&] {
    db::PgPool pool = OpenPool(kConnections);
    for ([[maybe_unused]] auto _ : state) {
      TaskGroup group;
      for (int i = 0; i < kVirtualThreads; ++i) {
        group.Spawn([&]() -> absl::Status {
          for (int n = 0; n < kStatements / kVirtualThreads; ++n) {
            BOBBIN_ASSIGN_OR_RETURN(const db::Rows rows, pool.Query(db::UncheckedSql(sql)));
            benchmark::DoNotOptimize(rows.size());
          }
          return absl::OkStatus();
        });
      }
      const absl::Status status = group.Wait();
      BOBBIN_CHECK(status.ok(), MessageOf(status));
    }
  });
  CountStatements(state, kStatements);
}
BENCHMARK_CAPTURE(VirtualThreads, one_row, kOneRow)
    ->Name("Postgres/VirtualThreads/OneRow")
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(VirtualThreads, ten_rows, kTenRows)
    ->Name("Postgres/VirtualThreads/TenRows")
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// --- One connection.

void OneAtATime(benchmark::State& state) {
  OnVirtualThread({.carriers = 1, .poller = io::AutoPoller()}, [&] {
    db::PgPool pool = OpenPool(1);
    for ([[maybe_unused]] auto _ : state) {
      for (int i = 0; i < kPipelined; ++i) {
        BOBBIN_CHECK(pool.Query(kOneRow).ok(), "the server is there");
      }
    }
  });
  CountStatements(state, kPipelined);
}
BENCHMARK(OneAtATime)->Name("Postgres/OneAtATime")->MeasureProcessCPUTime()->UseRealTime();

void Pipeline(benchmark::State& state) {
  OnVirtualThread({.carriers = 1, .poller = io::AutoPoller()}, [&] {
    db::PgPool pool = OpenPool(1);
    db::PgPipeline pipeline;
    for (int i = 0; i < kPipelined; ++i) pipeline.Add(kOneRow);
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(pool.RunPipeline(pipeline).ok(), "the server is there");
    }
  });
  CountStatements(state, kPipelined);
}
BENCHMARK(Pipeline)->Name("Postgres/Pipeline")->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace bobbin::bench
