// SPDX-License-Identifier: Apache-2.0
//
// The waits of a PostgreSQL pool, one by one, as docs/waits.md lists them.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using db::PgPool;
using db::PgPoolOptions;
using db::PgServer;
using db::PgTransaction;

// A loaded machine may take its time to end a statement.
constexpr std::chrono::seconds kPatience(30);

PgPoolOptions Options(const std::string& conninfo, size_t connections_max) {
  return {.server = {.conninfo = conninfo, .cancel_wait_max = kPatience},
          .connections_max = connections_max};
}

WaitStage Opening(Runtime&) {
  auto proxy = std::make_shared<TcpProxy>(PortOf(PostgresService::SharedConninfo()));
  proxy->Stall();
  const std::string conninfo = WithPort(PostgresService::SharedConninfo(), proxy->port());
  return {.wait = [proxy, conninfo] { return PgPool::Open(Options(conninfo, 1)).status(); },
          .satisfy = [proxy] { proxy->Resume(); },
          .sight_on_os_threads = Sight::kBlurred};
}

// A pool whose one connection a transaction holds until the event is set.
WaitStage OnBusyPool(Runtime& runtime, absl::Status (*wait)(PgPool&)) {
  struct Busy {
    PgPool pool = MustOpen(Options(PostgresService::SharedConninfo(), 1));
    Event go;
    std::atomic<bool> is_held{false};
    VirtualThread holder;
  };
  auto all = std::make_shared<Busy>();
  all->holder = runtime.Spawn([all = all.get()] {
    return all->pool.Transact([all](PgTransaction&) {
      all->is_held = true;
      return all->go.Wait();
    });
  });
  AwaitTrue([&] { return all->is_held.load(); });
  return {.wait = [all, wait] { return wait(all->pool); },
          .satisfy =
              [all] {
                all->go.Set();
                EXPECT_OK(all->holder.Join());
              }};
}

// A lock of the server's that another connection holds until the wait is let through.
WaitStage OnLock(Runtime&, absl::Status (*wait)(PgPool&, db::Sql)) {
  struct Locked {
    PgPool pool = MustOpen(Options(PostgresService::SharedConninfo(), 1));
    PgPool holder = MustOpen(Options(PostgresService::SharedConninfo(), 1));
    std::string sql;
  };
  static std::atomic<int> count{0};
  const std::string key = std::to_string(getpid() * 1000LL + ++count);
  auto all = std::make_shared<Locked>();
  const std::string lock = "select pg_advisory_lock(" + key + ")";
  EXPECT_OK(all->holder.Query(db::UncheckedSql(lock)));
  all->sql = lock + ", pg_advisory_unlock(" + key + ")";
  return {.wait = [all, wait] { return wait(all->pool, db::UncheckedSql(all->sql)); },
          .satisfy = [all] { EXPECT_OK(all->holder.Query("select pg_advisory_unlock_all()")); },
          .sight_on_os_threads = Sight::kBlurred};
}

std::function<WaitStage(Runtime&)> WhileBusy(absl::Status (*wait)(PgPool&)) {
  return [wait](Runtime& runtime) { return OnBusyPool(runtime, wait); };
}
std::function<WaitStage(Runtime&)> WhileLocked(absl::Status (*wait)(PgPool&, db::Sql)) {
  return [wait](Runtime& runtime) { return OnLock(runtime, wait); };
}

absl::Status DoNothing(PgTransaction&) { return absl::OkStatus(); }

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"PgPool::Open", Opening},
      {"PgPool::Query", WhileBusy([](PgPool& pool) { return pool.Query("select 1").status(); })},
      {"PgPool::Query, running",
       WhileLocked([](PgPool& pool, db::Sql lock) { return pool.Query(lock).status(); })},
      {"PgPool::Execute",
       WhileBusy([](PgPool& pool) { return pool.Execute("select 1").status(); })},
      {"PgPool::Execute, running",
       WhileLocked([](PgPool& pool, db::Sql lock) { return pool.Execute(lock).status(); })},
      {"PgPool::ExecuteScript",
       WhileBusy([](PgPool& pool) { return pool.ExecuteScript("select 1"); })},
      {"PgPool::ExecuteScript, running",
       WhileLocked([](PgPool& pool, db::Sql lock) { return pool.ExecuteScript(lock); })},
      {"PgPool::Transact", WhileBusy([](PgPool& pool) { return pool.Transact(DoNothing); })},
      {"PgTransaction::Query", WhileLocked([](PgPool& pool, db::Sql lock) {
         return pool.Transact([lock](PgTransaction& tx) { return tx.Query(lock).status(); });
       })},
      {"PgTransaction::Execute", WhileLocked([](PgPool& pool, db::Sql lock) {
         return pool.Transact([lock](PgTransaction& tx) { return tx.Execute(lock).status(); });
       })},
      {"PgPool::Close", WhileBusy([](PgPool& pool) { return pool.Close(); })},
  };
  return stages;
}

BOBBIN_IO_FOREIGN_TEST(PgWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("postgres", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
