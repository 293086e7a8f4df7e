// SPDX-License-Identifier: Apache-2.0
//
// A pool under load, and with much data; load.h says how a longer run is asked for.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"
#include "tests/support/leak_check.h"
#include "tests/support/load.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"

namespace bobbin::db {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::IsOkAndHolds;
using test::MustOpen;
using test::Random;
using test::Schema;
using test::TcpProxy;

constexpr size_t kThreads = 200;
constexpr size_t kConnections = 8;
constexpr int kAccounts = 20;
constexpr int kAccountMoney = 1000;

// What one of the threads was told of what it wrote. It marks each of its transactions with a
// number that it never uses again.
struct Told {
  std::set<int> done;
  std::set<int> unknown;  // They may have happened.
};

constexpr bool IsStop(absl::StatusCode code) {
  return code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kCancelled;
}

// Of many threads that move money to and fro, some of them out of time, or off the network.
class Bank {
 public:
  explicit Bank(const Schema& schema) : direct_(schema.Open(2)) {
    EXPECT_OK(
        direct_.ExecuteScript("create table account(id int primary key, money int);"
                              "create table mark(thread int, n int, primary key (thread, n))"));
    EXPECT_OK(direct_.Execute("insert into account select i, $1 from generate_series(1, $2) i",
                              kAccountMoney, kAccounts));
  }

  // Works until `end`; `is_cut_off` says that connections may be lost.
  absl::Status Work(PgPool& pool, int thread, uint64_t seed, Deadline end, bool is_cut_off) {
    Random random(seed);
    Told& told = told_[static_cast<size_t>(thread)];
    for (int n = 0; !end.HasPassed(MonotonicNow()); ++n) {
      const uint64_t what = random.Below(4);
      const DeadlineScope scope(what == 0 ? Deadline::After(microseconds(random.Below(5000)))
                                          : Deadline::Never());
      const absl::Status status = what == 1 ? Audit(pool) : Move(pool, random, thread, n);
      if (status.ok()) {
        if (what != 1) told.done.insert(n);
        continue;
      }
      told.unknown.insert(n);
      const bool is_expected =
          (what == 0 && (IsStop(status.code()) || absl::IsUnknown(status))) ||
          (is_cut_off && (absl::IsUnavailable(status) || absl::IsUnknown(status)));
      if (!is_expected) return status;
    }
    return absl::OkStatus();
  }

  // No money has come or gone, and what threads were told is so.
  void Check() {
    EXPECT_THAT(direct_.Query("select sum(money) from account")->Only<int64_t>(),
                IsOkAndHolds(int64_t{kAccounts} * kAccountMoney));
    const absl::StatusOr<Rows> marks = direct_.Query("select thread, n from mark");
    ASSERT_OK(marks);
    std::array<std::set<int>, kThreads> found;
    for (auto [thread, n] : marks->As<int, int>()) found[static_cast<size_t>(thread)].insert(n);
    size_t done = 0;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      const Told& told = told_[thread];
      for (const int n : told.done) EXPECT_TRUE(found[thread].contains(n)) << thread << ' ' << n;
      for (const int n : found[thread]) {
        EXPECT_TRUE(told.done.contains(n) || told.unknown.contains(n)) << thread << ' ' << n;
      }
      done += told.done.size();
    }
    EXPECT_GT(done, 0U);
  }

 private:
  static absl::Status Move(PgPool& pool, Random& random, int thread, int n) {
    const auto from = static_cast<int>(random.Between(1, kAccounts));
    const auto to = static_cast<int>(random.Between(1, kAccounts));
    return pool.Transact([&](PgTransaction& tx) -> absl::Status {
      // In one order, so that none waits for another one in a circle.
      BOBBIN_RETURN_IF_ERROR(
          tx.Query("select from account where id in ($1, $2) order by id for update", from, to)
              .status());
      BOBBIN_RETURN_IF_ERROR(
          tx.Execute("update account set money = money - 1 where id = $1", from).status());
      BOBBIN_RETURN_IF_ERROR(
          tx.Execute("update account set money = money + 1 where id = $1", to).status());
      return tx.Execute("insert into mark values ($1, $2)", thread, n).status();
    });
  }

  static absl::Status Audit(PgPool& pool) {
    BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select money from account"));
    int64_t sum = 0;
    for (auto [money] : rows.As<int>()) sum += money;
    if (sum == int64_t{kAccounts} * kAccountMoney) return absl::OkStatus();
    return absl::InternalError("half of a transaction was seen");
  }

  PgPool direct_;
  std::array<Told, kThreads> told_;
};

BOBBIN_IO_TEST(PgLoadTest, ManyThreadsOnFewConnectionsLoseNothing) {
  const Schema schema;
  Bank bank(schema);
  PgPool pool = schema.Open(kConnections);
  const Deadline end = Deadline::After(test::SoakTime(std::chrono::seconds(1)));
  TaskGroup group;
  for (size_t i = 0; i < kThreads; ++i) {
    group.Spawn([&, i, seed = random().Next()] {
      return bank.Work(pool, static_cast<int>(i), seed, end, false);
    });
  }
  EXPECT_OK(group.Wait());
  bank.Check();
  const PoolStatistics now = pool.Statistics();
  EXPECT_EQ(now.held, 0U);
  EXPECT_EQ(now.waiting, 0U);
  EXPECT_LE(now.open, kConnections);
}

BOBBIN_IO_TEST(PgLoadTest, ConnectionsThatAreCutLoseNothingThatWasTold) {
  const Schema schema;
  Bank bank(schema);
  TcpProxy proxy(test::PortOf(schema.conninfo()));
  {
    PgPool pool = MustOpen(
        {.server = {.conninfo = schema.ConninfoBy(proxy.port())}, .connections_max = kConnections});
    const Deadline end = Deadline::After(test::SoakTime(std::chrono::seconds(1)));
    TaskGroup group;
    for (size_t i = 0; i < kThreads; ++i) {
      group.Spawn([&, i, seed = random().Next()] {
        return bank.Work(pool, static_cast<int>(i), seed, end, true);
      });
    }
    while (!end.HasPassed(MonotonicNow())) {
      EXPECT_OK(SleepFor(milliseconds(random().Between(20, 100))));
      proxy.Cut();
    }
    EXPECT_OK(group.Wait());
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    EXPECT_EQ(pool.Statistics().held, 0U);
    EXPECT_GT(pool.Statistics().discarded, 0U);
  }
  bank.Check();
}

// --- Much data: it goes through, and is not kept.

constexpr size_t kRowBytes = 10'000;
constexpr size_t kMemoryMax = size_t{64} << 20;

// Memory that the process has got meanwhile. A sanitizer keeps what was freed.
void ExpectLittleMemory(size_t before) {
  if (test::kUnderSanitizer) return;
  const size_t now = test::ResidentBytes();
  EXPECT_LT(now, before + kMemoryMax);
}

BOBBIN_IO_TEST(PgLoadTest, MuchDataGoesThroughAndIsNotKept) {
  const Schema schema;
  PgPool pool = schema.Open(2);
  ASSERT_OK(pool.ExecuteScript("create unlogged table page(id int8, body text)"));
  const int64_t rows = test::BulkBytes(20'000'000) / int64_t{kRowBytes};
  const size_t before = test::ResidentBytes();
  const uint64_t holds = runtime().Statistics().computing_holds;

  auto in = pool.CopyIn("copy page from stdin");
  ASSERT_OK(in);
  const std::string body(kRowBytes, 'x');
  for (int64_t i = 0; i < rows; ++i) ASSERT_OK(in->WriteRow(i, body));
  EXPECT_THAT(in->Finish(), IsOkAndHolds(rows));
  // The server may keep up with all that, and yet others had their turns. What a sanitizer makes
  // slow is not meant.
  if (!test::kUnderSanitizer) {
    EXPECT_EQ(runtime().Statistics().computing_holds, holds);
  }
  ExpectLittleMemory(before);

  auto stream = pool.Stream("select id, body from page order by id");
  ASSERT_OK(stream);
  int64_t streamed = 0;
  while (true) {
    const absl::StatusOr<Rows> some = stream->Next();
    ASSERT_OK(some);
    if (some->empty()) break;
    for (auto [id, text] : some->As<int64_t, std::string_view>()) {
      ASSERT_EQ(id, streamed++);
      ASSERT_EQ(text.size(), kRowBytes);
    }
  }
  EXPECT_EQ(streamed, rows);
  ExpectLittleMemory(before);

  auto out = pool.CopyOut("copy page to stdout");
  ASSERT_OK(out);
  int64_t copied = 0;
  while (true) {
    const absl::StatusOr<std::string> row = out->Read();
    ASSERT_OK(row);
    if (row->empty()) break;
    ASSERT_GT(row->size(), kRowBytes);
    ++copied;
  }
  EXPECT_EQ(copied, rows);
  ExpectLittleMemory(before);
}

// A result that comes in very many pieces takes time in proportion to what it holds.
BOBBIN_IO_TEST(PgLoadTest, AStreamOfManySmallRowsIsWhole) {
  const Schema schema;
  PgPool pool = schema.Open(1);
  auto stream = pool.Stream("select i from generate_series(1, 200000) i");
  ASSERT_OK(stream);
  int64_t last = 0;
  while (true) {
    const absl::StatusOr<Rows> some = stream->Next();
    ASSERT_OK(some);
    if (some->empty()) break;
    for (auto [i] : some->As<int64_t>()) ASSERT_EQ(i, ++last);
  }
  EXPECT_EQ(last, 200'000);
}

}  // namespace
}  // namespace bobbin::db
