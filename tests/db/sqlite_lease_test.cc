// SPDX-License-Identifier: Apache-2.0
//
// Leases in one SQLite file, for which real processes race. lease_table_test.cc has the rest.

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/db/lease_table.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/twin_process.h"

namespace bobbin::db {
namespace {

using cron::Lease;
using test::IsOkAndHolds;
using test::StatusIs;
using test::TwinProcess;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr int64_t kForever = 1'000'000'000;

// Locks of other processes are waited for as long as it takes: a process that is stopped holds its
// own.
absl::StatusOr<Sqlite> OpenPatiently(const std::string& path) {
  return Sqlite::Open({.path = path,
                       .durability = SqliteDurability::kSinceCheckpoint,
                       .busy_wait_max = std::chrono::hours(1)});
}

// What the processes share: a counter, who has added to it with which token, and who was told that
// he holds the lease no more. A file of its own, gone at the end.
class SharedFile {
 public:
  SharedFile() {
    std::string folder = (std::filesystem::temp_directory_path() / "bobbin-leases-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    absl::StatusOr<Sqlite> db = OpenPatiently(path());
    EXPECT_OK(db);
    EXPECT_OK(
        db->ExecuteScript("create table counter(n integer, token integer);"
                          "insert into counter values (0, 0);"
                          "create table addition(process integer, token integer);"
                          "create table claimer(process integer primary key, owner text);"
                          "create table told(process integer);"));
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "shared.db").string(); }

 private:
  std::filesystem::path folder_;
};

// Adds one to the counter, in two steps that are one only because nobody else holds the lease. The
// token keeps out who wakes up when others have taken over.
absl::Status AddOne(Sqlite& db, const Lease& lease, int64_t up_to, bool& is_done) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, db.Query("select n from counter"));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t n, rows.Only<int64_t>());
  is_done = n >= up_to;
  if (is_done) return absl::OkStatus();
  return db.Transact([&](SqliteTransaction& transaction) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(
        const int64_t changed,
        transaction.Execute("update counter set n = $1, token = $2 where token < $2", n + 1,
                            lease.token));
    if (changed == 0) return absl::OkStatus();
    return transaction
        .Execute("insert into addition values ($1, $2)", static_cast<int64_t>(getpid()),
                 lease.token)
        .status();
  });
}

// What a twin does: claims as often as the counter says. Calls `then` when it has.
absl::Status Count(
    const std::string& path, int64_t up_to, absl::FunctionRef<void()> then = [] {}) {
  BOBBIN_ASSIGN_OR_RETURN(Sqlite db, OpenPatiently(path));
  BOBBIN_ASSIGN_OR_RETURN(LeaseTable table, LeaseTable::Open(db));
  // By what its leases are known.
  const std::string owner = cron::NewLeaseOwner();
  BOBBIN_RETURN_IF_ERROR(db.Execute("insert into claimer values ($1, $2)",
                                    static_cast<int64_t>(getpid()),
                                    owner.substr(0, owner.find('#')))
                             .status());
  for (bool is_done = false; !is_done;) {
    BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> lease,
                            table.Claim({.name = "count", .at_most = absl::Hours(1)}));
    if (!lease) {
      BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::microseconds(100)));
      continue;
    }
    then();
    BOBBIN_RETURN_IF_ERROR(AddOne(db, *lease, up_to, is_done));
    const absl::Status released = table.Release(*lease);
    if (released.code() != kAborted) {
      BOBBIN_RETURN_IF_ERROR(released);
      continue;
    }
    BOBBIN_RETURN_IF_ERROR(
        db.Execute("insert into told values ($1)", static_cast<int64_t>(getpid())).status());
  }
  return absl::OkStatus();
}

template <typename... Args>
int64_t Ask(Sqlite& db, Sql sql, const Args&... args) {
  const absl::StatusOr<Rows> rows = db.Query(sql, args...);
  EXPECT_OK(rows);
  const absl::StatusOr<int64_t> answer = rows.ok() ? rows->Only<int64_t>() : rows.status();
  EXPECT_OK(answer);
  return answer.value_or(0);
}

template <typename... Args>
void AwaitAbove(Sqlite& db, int64_t bound, Sql sql, const Args&... args) {
  while (!testing::Test::HasFailure() && Ask(db, sql, args...) <= bound) {
    EXPECT_OK(SleepFor(std::chrono::milliseconds(1)));
  }
}

// Whether a process, which does not run now, holds the lease.
bool Holds(Sqlite& db, pid_t process) {
  return Ask(db,
             "select count(*) from scheduler_lock join claimer "
             "on locked_by like owner || '#%' where name = 'count' and process = $1",
             static_cast<int64_t>(process)) == 1;
}

// Lets the lease of a process end: instead of the clock's going on, all that is written down is
// moved back.
absl::Status EndLeaseOf(Sqlite& db, pid_t process) {
  return db
      .Execute(
          "update scheduler_lock set locked_at = locked_at - 7200000, "
          "lock_until = lock_until - 7200000 where name = 'count' and exists "
          "(select 1 from claimer where process = $1 and locked_by like owner || '#%')",
          static_cast<int64_t>(process))
      .status();
}

// Each addition was made by one who alone held the lease, and the file is whole.
void ExpectNothingLost(Sqlite& db) {
  const absl::StatusOr<Rows> counted =
      db.Query("select (select n from counter), count(*) from addition");
  ASSERT_OK(counted);
  const auto [n, additions] = counted->As<int64_t, int64_t>()[0];
  EXPECT_EQ(n, additions);
  EXPECT_EQ(Ask(db,
                "select count(*) from addition as earlier join addition as later "
                "on later.rowid = earlier.rowid + 1 where later.token <= earlier.token"),
            0);
  const absl::StatusOr<Rows> whole = db.Query("pragma integrity_check");
  ASSERT_OK(whole);
  EXPECT_THAT(whole->Only<std::string>(), IsOkAndHolds(std::string("ok")));
}

BOBBIN_TEST(SqliteLeaseTest, TwoProcessesNeverHoldItAtOnce) {
  constexpr int64_t kUpTo = 30;
  if (const char* const path = TwinProcess::Errand()) {
    EXPECT_OK(Count(path, kUpTo));
    return;
  }
  const SharedFile file;
  TwinProcess first(file.path());
  TwinProcess second(file.path());
  EXPECT_THAT(first.Wait(), IsOkAndHolds(0));
  EXPECT_THAT(second.Wait(), IsOkAndHolds(0));
  absl::StatusOr<Sqlite> db = OpenPatiently(file.path());
  ASSERT_OK(db);
  ExpectNothingLost(*db);
  EXPECT_EQ(Ask(*db, "select n from counter"), kUpTo);
  EXPECT_EQ(Ask(*db, "select count(*) from told"), 0);
}

BOBBIN_TEST(SqliteLeaseTest, AProcessThatIsKilledFreesItAndTheOthersGoOn) {
  if (const char* const path = TwinProcess::Errand()) {
    EXPECT_OK(Count(path, kForever));
    return;
  }
  const SharedFile file;
  absl::StatusOr<Sqlite> db = OpenPatiently(file.path());
  ASSERT_OK(db);
  TwinProcess survivor(file.path());
  for (int round = 0; round < test::Rounds(8) && !HasFailure(); ++round) {
    TwinProcess victim(file.path());
    const auto id = static_cast<int64_t>(victim.id());
    AwaitAbove(*db, 0, "select count(*) from addition where process = $1", id);
    // Wherever it is now: between two steps, or in the middle of a write.
    EXPECT_OK(SleepFor(std::chrono::microseconds(random().Below(5'000))));
    victim.Kill();
    if (Holds(*db, static_cast<pid_t>(id))) {
      // Nobody else does, for an hour; which is now over.
      EXPECT_OK(EndLeaseOf(*db, static_cast<pid_t>(id)));
    }
    const int64_t n = Ask(*db, "select n from counter");
    AwaitAbove(*db, n + 1, "select n from counter");
  }
  survivor.Kill();
  ExpectNothingLost(*db);
  EXPECT_EQ(Ask(*db, "select count(*) from told"), 0);
}

BOBBIN_TEST(SqliteLeaseTest, AProcessThatSleepsTooLongIsToldAndTouchesNothing) {
  constexpr std::string_view kSleepy = "sleepy ";
  if (const char* const errand = TwinProcess::Errand()) {
    const std::string_view path(errand);
    EXPECT_OK(path.starts_with(kSleepy) ? Count(std::string(path.substr(kSleepy.size())), kForever,
                                                [] { TwinProcess::StopHere(); })
                                        : Count(errand, kForever));
    return;
  }
  const SharedFile file;
  absl::StatusOr<Sqlite> db = OpenPatiently(file.path());
  ASSERT_OK(db);
  TwinProcess sleeper(std::string(kSleepy) + file.path());
  TwinProcess other(file.path());
  const auto id = static_cast<int64_t>(sleeper.id());
  for (int64_t round = 0; round < 5 && !HasFailure(); ++round) {
    // It has just claimed it.
    ASSERT_OK(sleeper.AwaitStopped());
    EXPECT_TRUE(Holds(*db, sleeper.id()));
    EXPECT_OK(EndLeaseOf(*db, sleeper.id()));
    AwaitAbove(*db, Ask(*db, "select n from counter"), "select n from counter");
    sleeper.Continue();
    AwaitAbove(*db, round, "select count(*) from told where process = $1", id);
  }
  sleeper.Kill();
  other.Kill();
  ExpectNothingLost(*db);
  EXPECT_EQ(Ask(*db, "select count(*) from addition where process = $1", id), 0);
  EXPECT_EQ(Ask(*db, "select count(*) from told where process <> $1", id), 0);
}

}  // namespace
}  // namespace bobbin::db
