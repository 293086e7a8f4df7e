// SPDX-License-Identifier: Apache-2.0
//
// What is done to a SQLite file while it is used: checkpoints, backups, checks; and what a hundred
// threads and a slow disk make of it.

#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/role.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/slow_vfs.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/load.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::StatusIs;
using testing::HasSubstr;

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "bobbin-upkeep-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string File(std::string_view name) const { return (path_ / name).string(); }
  bool Has(std::string_view name) const { return std::filesystem::exists(path_ / name); }

 private:
  std::filesystem::path path_;
};

Sqlite MustOpen(SqliteOptions options) {
  options.durability = SqliteDurability::kSinceCheckpoint;
  absl::StatusOr<Sqlite> db = Sqlite::Open(std::move(options));
  BOBBIN_CHECK(db.ok(), MessageOf(db.status()));
  return *std::move(db);
}

template <typename T, typename... Args>
absl::StatusOr<T> Ask(Sqlite& db, Sql sql, const Args&... args) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, db.Query(sql, args...));
  return rows.Only<T>();
}

// Rows of some kilobytes, so that a log grows fast.
absl::Status InsertBlob(Sqlite& db) {
  return db.Execute("insert into t values (randomblob(20000))").status();
}

// --- Checkpoints.

BOBBIN_TEST(SqliteUpkeepTest, TheLogIsCopiedAsideAndBeginsAnew) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("a.db"), .checkpoint_bytes = 100'000});
  ASSERT_OK(db.Execute("create table t(b)"));
  ASSERT_OK(db.Transact([](SqliteTransaction& transaction) -> absl::Status {
    for (int i = 0; i < 10; ++i) {
      BOBBIN_RETURN_IF_ERROR(
          transaction.Execute("insert into t values (randomblob(20000))").status());
    }
    return absl::OkStatus();
  }));
  EXPECT_GT(db.Statistics().log_bytes, 200'000);
  AwaitTrue([&] { return db.Statistics().checkpoints == 1; });
  // All of it has been copied, and nobody reads: who writes next begins at its front.
  ASSERT_OK(InsertBlob(db));
  EXPECT_LT(db.Statistics().log_bytes, 100'000);
  EXPECT_EQ(db.Statistics().restarts, 0);
}

BOBBIN_TEST(SqliteUpkeepTest, ByHandNothingIsCopiedBefore) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("a.db"), .checkpoint_bytes = 0, .log_bytes_max = 0});
  ASSERT_OK(db.Execute("create table t(b)"));
  for (int i = 0; i < 300; ++i) ASSERT_OK(InsertBlob(db));
  EXPECT_GT(db.Statistics().log_bytes, 300 * 20'000);
  EXPECT_EQ(db.Statistics().checkpoints, 0);
  ASSERT_OK(db.Checkpoint());
  EXPECT_EQ(db.Statistics().log_bytes, 0);
  EXPECT_EQ(std::filesystem::file_size(folder.File("a.db-wal")), 0);
}

// Some read all the time, so that there is never a moment without one. `checkpoint_bytes` 0: the
// log is copied by force only.
void WriteUnderReaders(int64_t checkpoint_bytes) {
  SCOPED_TRACE(checkpoint_bytes);
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("a.db"),
                        .checkpoint_bytes = checkpoint_bytes,
                        .log_bytes_max = 1'000'000});
  ASSERT_OK(db.Execute("create table t(b)"));
  ASSERT_OK(InsertBlob(db));
  std::atomic<bool> is_done{false};
  std::atomic<int> reads{0};
  TaskGroup readers;
  for (int i = 0; i < 6; ++i) {
    readers.Spawn([&]() -> absl::Status {
      while (!is_done) {
        BOBBIN_RETURN_IF_ERROR(
            db.Query("with recursive n(i) as (select 1 union all select i + 1 from n where i < "
                     "2000) select count(*) from n, (select count(*) from t)")
                .status());
        ++reads;
      }
      return absl::OkStatus();
    });
  }
  AwaitTrue([&] { return reads > 6; });
  // How often it takes up less than before.
  int begun_anew = 0;
  for (int64_t before = 0; begun_anew < 3;) {
    ASSERT_OK(InsertBlob(db));
    const int64_t now = db.Statistics().log_bytes;
    if (now < before) ++begun_anew;
    before = now;
  }
  is_done = true;
  EXPECT_OK(readers.Wait());
  EXPECT_THAT(Ask<std::string>(db, "pragma integrity_check"), IsOkAndHolds(std::string("ok")));
}

BOBBIN_TEST(SqliteUpkeepTest, ReadersWithoutEndDoNotLetTheLogGrowWithoutBound) {
  WriteUnderReaders(0);
  WriteUnderReaders(200'000);
}

// --- Backups.

BOBBIN_TEST(SqliteUpkeepTest, ABackupUnderLoadIsOfOneMoment) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("a.db"), .checkpoint_bytes = 100'000});
  // Both tables change together, at both ends of the file.
  ASSERT_OK(
      db.ExecuteScript("create table first(n); insert into first values (0);"
                       "create table t(b);"
                       "insert into t with recursive n(i) as (select 1 union all select i + 1 from "
                       "n where i < 500) select randomblob(4000) from n;"
                       "create table last(n); insert into last values (0)"));
  std::atomic<bool> is_done{false};
  VirtualThread writer = Spawn([&]() -> absl::Status {
    for (int n = 1; !is_done; ++n) {
      BOBBIN_RETURN_IF_ERROR(db.Transact([&](SqliteTransaction& transaction) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(transaction.Execute("update first set n = $1", n).status());
        BOBBIN_RETURN_IF_ERROR(
            transaction.Execute("update t set b = randomblob(4000) where rowid = $1", n % 500)
                .status());
        return transaction.Execute("update last set n = $1", n).status();
      }));
    }
    return absl::OkStatus();
  });
  int64_t seen = 0;
  int steps = 0;
  EXPECT_OK(db.Backup(
      {.path = folder.File("b.db"), .pages_a_step = 50}, [&](const SqliteBackupProgress& progress) {
        EXPECT_GT(progress.pages_done, seen);
        EXPECT_LE(progress.pages_done, progress.pages_total);
        seen = progress.pages_done;
        // The writer goes on between two steps.
        const int n = Ask<int>(db, "select n from first").value();
        if (++steps < 4) {
          AwaitTrue([&] { return Ask<int>(db, "select n from first").value() > n; });
        }
        return absl::OkStatus();
      }));
  is_done = true;
  EXPECT_OK(writer.Join());
  EXPECT_GE(steps, 10);
  EXPECT_FALSE(folder.Has("b.db.partial"));
  Sqlite copy = MustOpen({.path = folder.File("b.db"), .check = SqliteCheck::kAll});
  const absl::StatusOr<Rows> rows = copy.Query("select first.n, last.n from first, last");
  ASSERT_OK(rows);
  const auto [first, last] = rows->As<int, int>()[0];
  EXPECT_EQ(first, last);
  EXPECT_THAT(Ask<int>(copy, "select count(*) from t"), IsOkAndHolds(500));
}

BOBBIN_TEST(SqliteUpkeepTest, ABackupThatEndsEarlyLeavesNothing) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("a.db")});
  ASSERT_OK(db.Execute("create table t(b)"));
  for (int i = 0; i < 20; ++i) ASSERT_OK(InsertBlob(db));
  const SqliteBackupOptions options = {.path = folder.File("b.db"), .pages_a_step = 1};

  EXPECT_THAT(
      db.Backup(options, [](const SqliteBackupProgress&) { return absl::AbortedError("no more"); }),
      StatusIs(absl::StatusCode::kAborted));
  // Also when it is whole.
  EXPECT_THAT(db.Backup({.path = options.path},
                        [](const SqliteBackupProgress&) { return absl::AbortedError("no more"); }),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THROW(db.Backup(options,
                         [](const SqliteBackupProgress&) -> absl::Status {
                           throw std::runtime_error("lost");
                         })
                   .IgnoreError(),
               std::runtime_error);
  Event begun;
  std::atomic<bool> is_cancelled{false};
  VirtualThread cancelled = Spawn([&] {
    return db.Backup(options, [&](const SqliteBackupProgress&) {
      begun.Set();
      AwaitTrue([&] { return is_cancelled.load(); });
      return absl::OkStatus();
    });
  });
  ASSERT_OK(begun.Wait());
  cancelled.Cancel();
  is_cancelled = true;
  EXPECT_THAT(cancelled.Join(), StatusIs(test::kCancelled));
  EXPECT_FALSE(folder.Has("b.db"));
  EXPECT_FALSE(folder.Has("b.db.partial"));

  EXPECT_OK(db.Backup(options));
  EXPECT_THAT(db.Backup(options), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_FALSE(folder.Has("b.db.partial"));
  EXPECT_THAT(db.Backup({.path = folder.File("no/such/folder.db")}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(InsertBlob(db));
}

BOBBIN_TEST(SqliteUpkeepTest, ADatabaseInMemoryIsBackedUpToo) {
  const Folder folder;
  Sqlite db = MustOpen({.path = ":memory:"});
  ASSERT_OK(db.ExecuteScript("create table t(i); insert into t values (7)"));
  EXPECT_OK(db.Backup({.path = folder.File("b.db")}));
  EXPECT_OK(db.Execute("insert into t values (8)"));
  Sqlite copy = MustOpen({.path = folder.File("b.db")});
  EXPECT_THAT(Ask<int>(copy, "select i from t"), IsOkAndHolds(7));
}

// --- Checks.

BOBBIN_TEST(SqliteUpkeepTest, ADamagedFileIsFoundWhenItIsOpened) {
  const Folder folder;
  {
    Sqlite db = MustOpen({.path = folder.File("a.db")});
    ASSERT_OK(db.Execute("create table t(b)"));
    for (int i = 0; i < 20; ++i) ASSERT_OK(InsertBlob(db));
  }
  const auto open = [&](SqliteCheck check) {
    return Sqlite::Open({.path = folder.File("a.db"), .check = check}).status();
  };
  EXPECT_OK(open(SqliteCheck::kPages));
  EXPECT_OK(open(SqliteCheck::kAll));
  {
    // The root of the table, which the schema does not need.
    std::fstream file(folder.File("a.db"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(4096, '\xee');
  }
  EXPECT_OK(open(SqliteCheck::kNone));
  for (const SqliteCheck check : {SqliteCheck::kPages, SqliteCheck::kAll}) {
    const absl::Status damaged = open(check);
    EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(damaged.ToString(), HasSubstr("a.db"));
  }
}

// --- Load.

BOBBIN_TEST(SqliteUpkeepTest, WhileTheDiskStallsOthersRun) {
  const Folder folder;
  test::SlowVfs disk;
  {
    Sqlite db = MustOpen({.path = folder.File("a.db")});
    ASSERT_OK(db.ExecuteScript("create table t(b); insert into t values (1)"));
    ASSERT_OK(db.Query("select * from t"));  // Readers open, too.
    disk.Stall();
    VirtualThread writer = Spawn([&] { return db.Execute("insert into t values (2)").status(); });
    AwaitTrue([&] { return disk.stalled() == 1; });
    // With one carrier it is this one.
    for (int i = 0; i < 5; ++i) {
      EXPECT_OK(SleepFor(milliseconds(1)));
      EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(1));
    }
    {
      // Who waits for the writer leaves in time; the disk does not keep him.
      const DeadlineScope scope(milliseconds(5));
      EXPECT_THAT(db.Execute("insert into t values (3)"), StatusIs(test::kDeadlineExceeded));
    }
    EXPECT_EQ(disk.stalled(), 1);
    disk.Go();
    EXPECT_OK(writer.Join());
    EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(2));
  }
  EXPECT_EQ(disk.roles(), 1U << static_cast<uint32_t>(Role::kPlatform));
}

// A second database object on the same file is as good as a second process: it locks the file.
BOBBIN_TEST(SqliteUpkeepTest, AHundredWritersAndReadersLoseNothingAndSeeNoLock) {
  constexpr int kThreads = 50;
  const Folder folder;
  std::vector<Sqlite> dbs;
  for (int i = 0; i < 2; ++i) {
    dbs.push_back(MustOpen({.path = folder.File("a.db"),
                            .busy_wait_max = std::chrono::hours(1),
                            .checkpoint_bytes = 200'000,
                            .log_bytes_max = 2'000'000}));
  }
  ASSERT_OK(
      dbs[0].ExecuteScript("create table entry(writer integer, n integer);"
                           "create table total(n integer); insert into total values (0)"));
  std::atomic<bool> is_done{false};
  std::vector<int> written(kThreads);
  TaskGroup group;
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      Sqlite& db = dbs[static_cast<size_t>(i % 8 == 0)];
      int& n = written[static_cast<size_t>(i)];
      while (!is_done) {
        BOBBIN_RETURN_IF_ERROR(db.Transact([&](SqliteTransaction& transaction) -> absl::Status {
          BOBBIN_ASSIGN_OR_RETURN(const Rows rows, transaction.Query("select n from total"));
          BOBBIN_ASSIGN_OR_RETURN(const int total, rows.Only<int>());
          BOBBIN_RETURN_IF_ERROR(
              transaction.Execute("update total set n = $1", total + 1).status());
          return transaction.Execute("insert into entry values ($1, $2)", i, n + 1).status();
        }));
        ++n;
      }
      return absl::OkStatus();
    });
    group.Spawn([&, i]() -> absl::Status {
      Sqlite& db = dbs[static_cast<size_t>(i % 2)];
      int last = 0;
      while (!is_done) {
        BOBBIN_ASSIGN_OR_RETURN(
            const Rows rows,
            db.Query("select (select n from total), (select count(*) from entry)"));
        BOBBIN_ASSIGN_OR_RETURN(const auto both, (rows.Only<int, int>()));
        const auto [total, entries] = both;
        if (total != entries) return absl::InternalError("half of a transaction");
        if (total < last) return absl::InternalError("back in time");
        last = total;
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(SleepFor(test::SoakTime(std::chrono::seconds(1))));
  is_done = true;
  EXPECT_OK(group.Wait());
  int all = 0;
  for (int i = 0; i < kThreads; ++i) {
    const int n = written[static_cast<size_t>(i)];
    EXPECT_THAT(Ask<int>(dbs[0], "select count(distinct n) from entry where writer = $1", i),
                IsOkAndHolds(n));
    all += n;
  }
  EXPECT_GT(all, 0);
  EXPECT_THAT(Ask<int>(dbs[1], "select n from total"), IsOkAndHolds(all));
  EXPECT_THAT(Ask<std::string>(dbs[0], "pragma integrity_check"), IsOkAndHolds(std::string("ok")));
  EXPECT_EQ(runtime().Statistics().blocking_holds, 0);
}

}  // namespace
}  // namespace bobbin::db
