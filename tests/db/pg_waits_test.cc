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

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_listener.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using db::PgListener;
using db::PgPool;
using db::PgPoolOptions;
using db::PgTransaction;

// A number that no other stage has.
std::string NewName() {
  static std::atomic<int> count{0};
  return std::to_string(getpid() * 1000LL + ++count);
}

// A loaded machine may take its time to end a statement.
constexpr std::chrono::seconds kPatience(30);

PgPoolOptions Options(const std::string& conninfo, size_t connections_max) {
  return {.server = {.conninfo = conninfo, .cancel_wait_max = kPatience},
          .connections_max = connections_max};
}

WaitStage Opening(absl::Status (*open)(const std::string& conninfo)) {
  auto proxy = std::make_shared<TcpProxy>(PortOf(PostgresService::SharedConninfo()));
  proxy->Stall();
  const std::string conninfo = WithPort(PostgresService::SharedConninfo(), proxy->port());
  return {.wait = [proxy, conninfo, open] { return open(conninfo); },
          .satisfy = [proxy] { proxy->Resume(); },
          .sight_on_os_threads = Sight::kBlurred,
          .pace = Pace::kSlow,
          .rest = Rest::kBroken};  // It waits for platform threads first.
}

WaitStage Listening(Runtime&) {
  struct Quiet {
    Quiet() { EXPECT_OK(listener.Next()); }  // That it is connected.
    std::string channel = NewName();
    PgListener listener =
        PgListener::Open({.conninfo = PostgresService::SharedConninfo()}, {channel}).value();
    PgPool pool = MustOpen(Options(PostgresService::SharedConninfo(), 1));
  };
  auto all = std::make_shared<Quiet>();
  return {
      .wait = [all] { return all->listener.Next().status(); },
      .satisfy = [all] { EXPECT_OK(all->pool.Query("select pg_notify($1, '')", all->channel)); },
      .sight_on_os_threads = Sight::kBlurred,
      .pace = Pace::kSlow};
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
              },
          .pace = Pace::kSlow};
}

// A lock of the server's that another connection holds until the wait is let through.
WaitStage OnLock(const std::string& before, absl::Status (*wait)(PgPool&, db::Sql),
                 const std::string& after) {
  struct Locked {
    PgPool pool = MustOpen(Options(PostgresService::SharedConninfo(), 1));
    PgPool holder = MustOpen(Options(PostgresService::SharedConninfo(), 1));
    std::string sql;
  };
  const std::string key = NewName();
  auto all = std::make_shared<Locked>();
  const std::string lock = "select pg_advisory_lock(" + key + ")";
  EXPECT_OK(all->holder.Query(db::UncheckedSql(lock)));
  all->sql = before + lock + ", pg_advisory_unlock(" + key + ")" + after;
  return {.wait = [all, wait] { return wait(all->pool, db::UncheckedSql(all->sql)); },
          .satisfy = [all] { EXPECT_OK(all->holder.Query("select pg_advisory_unlock_all()")); },
          .sight_on_os_threads = Sight::kBlurred,
          .pace = Pace::kSlow};
}

std::function<WaitStage(Runtime&)> WhileBusy(absl::Status (*wait)(PgPool&)) {
  return [wait](Runtime& runtime) { return OnBusyPool(runtime, wait); };
}
std::function<WaitStage(Runtime&)> WhileLocked(absl::Status (*wait)(PgPool&, db::Sql)) {
  return [wait](Runtime&) { return OnLock("", wait, ""); };
}

absl::Status DoNothing(PgTransaction&) { return absl::OkStatus(); }

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"PgPool::Open",
       [](Runtime&) {
         return Opening([](const std::string& conninfo) {
           return PgPool::Open(Options(conninfo, 1)).status();
         });
       }},
      {"PgListener::Open",
       [](Runtime&) {
         return Opening([](const std::string& conninfo) {
           return PgListener::Open({.conninfo = conninfo}, {}).status();
         });
       }},
      {"PgListener::Next", Listening},
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
      {"PgPool::RunPipeline", WhileBusy([](PgPool& pool) {
         db::PgPipeline pipeline;
         pipeline.Add("select 1");
         return pool.RunPipeline(pipeline).status();
       })},
      {"PgPool::Stream", WhileBusy([](PgPool& pool) { return pool.Stream("select 1").status(); })},
      {"PgPool::CopyIn", WhileBusy([](PgPool& pool) {
         return pool.CopyIn("copy pg_temp.none from stdin").status().code() ==
                        absl::StatusCode::kNotFound
                    ? absl::OkStatus()
                    : CheckStop();
       })},
      {"PgPool::CopyOut",
       WhileBusy([](PgPool& pool) { return pool.CopyOut("copy (select 1) to stdout").status(); })},
      {"PgStream::Next", WhileLocked([](PgPool& pool, db::Sql lock) -> absl::Status {
         BOBBIN_ASSIGN_OR_RETURN(db::PgStream stream, pool.Stream(lock));
         return stream.Next().status();
       })},
      {"PgCopyOut::Read",
       [](Runtime&) {
         return OnLock(
             "copy (",
             [](PgPool& pool, db::Sql copy) -> absl::Status {
               BOBBIN_ASSIGN_OR_RETURN(db::PgCopyOut out, pool.CopyOut(copy));
               return out.Read().status();
             },
             ") to stdout");
       }},
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
