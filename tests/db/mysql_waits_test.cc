// SPDX-License-Identifier: Apache-2.0
//
// The waits of a MySQL pool, one by one, as docs/waits.md lists them.

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
#include <bobbin/db/mysql_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/db/mysql_test.h"
#include "tests/db/tcp_proxy.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using db::MySqlPool;
using db::MySqlPoolOptions;
using db::MySqlTransaction;

// A loaded machine may take its time to end a statement.
constexpr std::chrono::seconds kPatience(30);

MySqlPoolOptions Options(db::MySqlServer server) {
  server.cancel_wait_max = kPatience;
  return {.server = std::move(server), .connections_max = 1};
}

absl::Status DoNothing(MySqlTransaction&) { return absl::OkStatus(); }

WaitStage Opening(Runtime&) {
  auto proxy = std::make_shared<TcpProxy>(MySqlService::Shared().port);
  proxy->Stall();
  const db::MySqlServer server = SharedBy(proxy->port());
  return {.wait = [proxy, server] { return MySqlPool::Open(Options(server)).status(); },
          .satisfy = [proxy] { proxy->Resume(); },
          .sight_on_os_threads = Sight::kBlurred,
          .pace = Pace::kSlow,
          .rest = Rest::kBroken};  // It waits for platform threads first.
}

// What a thread does in a transaction until it is let go.
class Holder {
 public:
  Holder(Runtime& runtime, const db::MySqlServer& server,
         std::function<absl::Status(MySqlTransaction&)> first)
      : pool_(MustOpen(Options(server))), first_(std::move(first)) {
    thread_ = runtime.Spawn([this] {
      return pool_.Transact([this](MySqlTransaction& transaction) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(first_(transaction));
        is_held_ = true;
        return go_.Wait();
      });
    });
    AwaitTrue([this] { return is_held_.load(); });
  }

  MySqlPool& pool() { return pool_; }
  void LetGo() {
    go_.Set();
    EXPECT_OK(thread_.Join());
  }

 private:
  MySqlPool pool_;
  const std::function<absl::Status(MySqlTransaction&)> first_;
  Event go_;
  std::atomic<bool> is_held_{false};
  VirtualThread thread_;
};

// A pool whose one connection a transaction holds.
std::function<WaitStage(Runtime&)> WhileBusy(absl::Status (*wait)(MySqlPool&)) {
  return [wait](Runtime& runtime) -> WaitStage {
    auto holder = std::make_shared<Holder>(runtime, MySqlService::Shared(), DoNothing);
    return {.wait = [holder, wait] { return wait(holder->pool()); },
            .satisfy = [holder] { holder->LetGo(); },
            .pace = Pace::kSlow};
  };
}

// A row of a table that another transaction has locked, and the statement that wants it.
std::function<WaitStage(Runtime&)> WhileLocked(absl::Status (*wait)(MySqlPool&, db::Sql)) {
  return [wait](Runtime& runtime) -> WaitStage {
    struct Locked {
      Locked(Runtime& on, const std::string& number)
          : insert("insert into waits values (" + number + ")"),
            lock("select n from waits where n = " + number + " for update"),
            holder(on, MySqlService::Shared(), [this](MySqlTransaction& transaction) {
              return transaction.Execute(db::UncheckedSql(insert)).status();
            }) {}
      const std::string insert;
      const std::string lock;
      MySqlPool pool = MustOpen(Options(MySqlService::Shared()));
      Holder holder;
    };
    static std::atomic<int> count{0};
    auto all = std::make_shared<Locked>(runtime, std::to_string(getpid() * 1000LL + ++count));
    return {.wait = [all, wait] { return wait(all->pool, db::UncheckedSql(all->lock)); },
            .satisfy = [all] { all->holder.LetGo(); },
            .sight_on_os_threads = Sight::kBlurred,
            .pace = Pace::kSlow};
  };
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"MySqlPool::Open", Opening},
      {"MySqlPool::Query",
       WhileBusy([](MySqlPool& pool) { return pool.Query("select 1").status(); })},
      {"MySqlPool::Query, running",
       WhileLocked([](MySqlPool& pool, db::Sql lock) { return pool.Query(lock).status(); })},
      {"MySqlPool::Execute",
       WhileBusy([](MySqlPool& pool) { return pool.Execute("do 0").status(); })},
      {"MySqlPool::Execute, running",
       WhileLocked([](MySqlPool& pool, db::Sql lock) { return pool.Execute(lock).status(); })},
      {"MySqlPool::ExecuteScript",
       WhileBusy([](MySqlPool& pool) { return pool.ExecuteScript("do 0"); })},
      {"MySqlPool::ExecuteScript, running",
       WhileLocked([](MySqlPool& pool, db::Sql lock) { return pool.ExecuteScript(lock); })},
      {"MySqlPool::Transact", WhileBusy([](MySqlPool& pool) { return pool.Transact(DoNothing); })},
      {"MySqlTransaction::Query", WhileLocked([](MySqlPool& pool, db::Sql lock) {
         return pool.Transact([lock](MySqlTransaction& tx) { return tx.Query(lock).status(); });
       })},
      {"MySqlTransaction::Execute", WhileLocked([](MySqlPool& pool, db::Sql lock) {
         return pool.Transact([lock](MySqlTransaction& tx) { return tx.Execute(lock).status(); });
       })},
      {"MySqlPool::Close", WhileBusy([](MySqlPool& pool) { return pool.Close(); })},
  };
  return stages;
}

BOBBIN_IO_FOREIGN_TEST(MySqlWaitsTest, EachWaitAnswersAsTheTableSays) {
  ASSERT_OK(OpenMySql(1).Execute("create table if not exists waits(n bigint primary key)"));
  WalkWaits("mysql", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
