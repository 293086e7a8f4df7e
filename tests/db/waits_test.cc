// SPDX-License-Identifier: Apache-2.0
//
// The waits of a SQLite database, one by one, as docs/waits.md lists them.

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using db::Sqlite;
using db::SqliteTransaction;

Sqlite OpenInMemory(PlatformPool* pool) {
  return Sqlite::Open({.path = ":memory:", .pool = pool}).value();
}

// A database in memory, whose one connection a transaction holds until the event is set.
WaitStage OnBusyDatabase(Runtime& runtime, absl::Status (*wait)(Sqlite&)) {
  struct Busy {
    Sqlite db = OpenInMemory(nullptr);
    Event go;
    std::atomic<bool> is_held{false};
    VirtualThread holder;
  };
  auto all = std::make_shared<Busy>();
  EXPECT_OK(all->db.ExecuteScript("create table t(n)"));
  all->holder = runtime.Spawn([all = all.get()] {
    return all->db.Transact([all](SqliteTransaction&) {
      all->is_held = true;
      return all->go.Wait();
    });
  });
  AwaitTrue([&] { return all->is_held.load(); });
  return {.wait = [all, wait] { return wait(all->db); },
          .satisfy =
              [all] {
                all->go.Set();
                EXPECT_OK(all->holder.Join());
              }};
}

std::filesystem::path MakeFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "bobbin-waits-XXXXXX").string();
  EXPECT_NE(::mkdtemp(path.data()), nullptr);
  return path;
}

// Statements that run for as long as nobody interrupts them, and such as take no time.
enum class Length { kEndless, kShort };

db::Sql QueryOf(Length length) {
  if (length == Length::kShort) return "select 1";
  return "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
}

db::Sql InsertOf(Length length) {
  if (length == Length::kShort) return "insert into t values (1)";
  return "with recursive n(i) as (select 1 union all select i + 1 from n) "
         "insert into t select i from n where i < 0";
}

WaitStage Running(absl::Status (*wait)(Sqlite&, Length)) {
  auto db = std::make_shared<Sqlite>(OpenInMemory(nullptr));
  EXPECT_OK(db->ExecuteScript("create table t(n)"));
  return {.wait = [db, wait] { return wait(*db, Length::kEndless); },
          .satisfy = nullptr,
          .wait_shortly = [db, wait] { return wait(*db, Length::kShort); },
          .sight_on_os_threads = Sight::kBlurred};
}

// A pool whose one thread may be busy until the event is set.
struct BusyPool {
  void Occupy() {
    EXPECT_OK(pool.Submit([this] { EXPECT_OK(go.Wait()); }));
    AwaitTrue([this] { return pool.Statistics().active == 1; });
  }
  Event go;
  PlatformPool pool{{.name = "small", .threads = 1}};
};

// Nobody can make a step of a backup take long, but who is told of it can. Between the steps its
// thread is awake.
WaitStage BackingUp(Runtime&) {
  struct Copied {
    ~Copied() { std::filesystem::remove_all(folder); }
    std::filesystem::path folder = MakeFolder();
    Sqlite db = OpenInMemory(nullptr);
    Event go;
  };
  auto all = std::make_shared<Copied>();
  EXPECT_OK(all->db.ExecuteScript("create table t(n)"));
  return {.wait =
              [all] {
                return all->db.Backup(
                    {.path = (all->folder / "copy.db").string()},
                    [all](const db::SqliteBackupProgress&) { return all->go.Wait(); });
              },
          .satisfy = [all] { all->go.Set(); },
          .rest = Rest::kBroken};
}

// OS threads open and close by themselves.
WaitStage Opening(Runtime&) {
  auto all = std::make_shared<BusyPool>();
  all->Occupy();
  return {.wait = [all] { return Sqlite::Open({.path = ":memory:", .pool = &all->pool}).status(); },
          .satisfy = [all] { all->go.Set(); },
          .waiters = Waiters::kVirtual};
}

WaitStage Destroying(Runtime&) {
  struct Doomed : BusyPool {
    std::optional<Sqlite> db = OpenInMemory(&pool);
  };
  auto all = std::make_shared<Doomed>();
  all->Occupy();
  return {.wait =
              [all] {
                all->db.reset();
                return absl::OkStatus();
              },
          .satisfy = [all] { all->go.Set(); },
          .waiters = Waiters::kVirtual};
}

std::function<WaitStage(Runtime&)> WhileBusy(absl::Status (*wait)(Sqlite&)) {
  return [wait](Runtime& runtime) { return OnBusyDatabase(runtime, wait); };
}

std::function<WaitStage(Runtime&)> WhileRunning(absl::Status (*wait)(Sqlite&, Length)) {
  return [wait](Runtime&) { return Running(wait); };
}

absl::Status DoNothing(SqliteTransaction&) { return absl::OkStatus(); }

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"Sqlite::Open", Opening},
      {"Sqlite::~Sqlite", Destroying},
      {"Sqlite::Query",
       WhileBusy([](Sqlite& db) { return db.Query(QueryOf(Length::kShort)).status(); })},
      {"Sqlite::Query, running",
       WhileRunning([](Sqlite& db, Length length) { return db.Query(QueryOf(length)).status(); })},
      {"Sqlite::Execute",
       WhileBusy([](Sqlite& db) { return db.Execute(InsertOf(Length::kShort)).status(); })},
      {"Sqlite::Execute, running", WhileRunning([](Sqlite& db, Length length) {
         return db.Execute(InsertOf(length)).status();
       })},
      {"Sqlite::ExecuteScript",
       WhileBusy([](Sqlite& db) { return db.ExecuteScript(InsertOf(Length::kShort)); })},
      {"Sqlite::Transact", WhileBusy([](Sqlite& db) { return db.Transact(DoNothing); })},
      {"Sqlite::TransactBlocking",
       WhileBusy([](Sqlite& db) { return db.TransactBlocking(DoNothing); })},
      {"Sqlite::Checkpoint", WhileBusy([](Sqlite& db) { return db.Checkpoint(); })},
      {"Sqlite::Backup", BackingUp},
      {"SqliteTransaction::Query", WhileRunning([](Sqlite& db, Length length) {
         return db.Transact(
             [length](SqliteTransaction& tx) { return tx.Query(QueryOf(length)).status(); });
       })},
      {"SqliteTransaction::Execute", WhileRunning([](Sqlite& db, Length length) {
         return db.Transact(
             [length](SqliteTransaction& tx) { return tx.Execute(InsertOf(length)).status(); });
       })},
      {"Sqlite::Close", WhileBusy([](Sqlite& db) { return db.Close(); })},
  };
  return stages;
}

BOBBIN_FOREIGN_TEST(SqliteWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("sqlite", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
