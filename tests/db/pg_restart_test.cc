// SPDX-License-Identifier: Apache-2.0
//
// A server that ends and comes back while it is used: a server of this test's own.

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/pg_test.h"
#include "tests/services/postgres_service.h"
#include "tests/support/bobbin_test.h"

namespace bobbin::db {
namespace {

using test::AwaitTrue;
using test::PostgresService;

// Writes numbers that nobody else writes, and keeps count of what it was told.
struct Writer {
  absl::Status Write(PgPool& pool, int64_t number) {
    // Not one that is tried again: it may have been written.
    const absl::Status status = pool.Execute("insert into journal values ($1)", number).status();
    if (status.ok()) {
      written.insert(number);
      return absl::OkStatus();
    }
    return status.code() == absl::StatusCode::kUnavailable ? absl::OkStatus() : status;
  }
  std::set<int64_t> written;
};

void RunThrough(void (PostgresService::*end)()) {
  PostgresService service;
  // What was committed must outlive a crash of the server, as it does with a setting of its own.
  const std::string conninfo = service.conninfo() + " options='-c synchronous_commit=on'";
  test::WithRuntime({.carriers = 2, .poller = io::AutoPoller()}, [&](Runtime& runtime) {
    constexpr size_t kWriters = 16;
    std::vector<Writer> writers(kWriters);
    std::atomic<int64_t> successes{0};
    std::atomic<bool> is_over{false};
    VirtualThread main = runtime.Spawn([&] {
      PgPool pool = test::MustOpen({.server = {.conninfo = conninfo}, .connections_max = 4});
      EXPECT_OK(pool.ExecuteScript("create table journal(number int8)"));
      TaskGroup group;
      for (size_t i = 0; i < kWriters; ++i) {
        group.Spawn([&, i]() -> absl::Status {
          for (int64_t n = 0; !is_over; ++n) {
            const size_t before = writers[i].written.size();
            BOBBIN_RETURN_IF_ERROR(writers[i].Write(
                pool, n * static_cast<int64_t>(kWriters) + static_cast<int64_t>(i)));
            if (writers[i].written.size() > before) ++successes;
            Yield();
          }
          return absl::OkStatus();
        });
      }
      EXPECT_OK(group.Wait());
      // Whatever was written, was once; and all that was told is there.
      auto rows = pool.Query("select number, count(*) from journal group by number");
      ASSERT_OK(rows);
      std::set<int64_t> found;
      for (auto [number, count] : rows->As<int64_t, int64_t>()) {
        EXPECT_EQ(count, 1) << number;
        found.insert(number);
      }
      for (const Writer& writer : writers) {
        for (const int64_t number : writer.written) EXPECT_TRUE(found.contains(number)) << number;
      }
      EXPECT_EQ(pool.Statistics().held, 0U);
      EXPECT_LE(pool.Statistics().open, 4U);
    });
    const auto await_more = [&] {
      const int64_t before = successes;
      AwaitTrue([&] { return successes > before + 20; });
    };
    await_more();
    (service.*end)();
    service.Resume();
    await_more();
    is_over = true;
    EXPECT_OK(main.Join());
  });
}

TEST(PgRestartTest, AfterAShutdownThePoolHealsAndNothingRunsTwice) {
  RunThrough(&PostgresService::Pause);
}

TEST(PgRestartTest, AfterACrashThePoolHealsAndNothingRunsTwice) {
  RunThrough(&PostgresService::Kill);
}

}  // namespace
}  // namespace bobbin::db
