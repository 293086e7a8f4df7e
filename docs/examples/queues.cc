// SPDX-License-Identifier: Apache-2.0
//
// Queues: messages that leave with a transaction, and tasks that survive the process. Here on
// SQLite; on a PgPool it is the same.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/database.h>
#include <bobbin/db/durable_queue.h>
#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

using bobbin::db::Database;
using bobbin::db::Transaction;

namespace {

// [add]
absl::Status PlaceOrder(Database& shop, const bobbin::db::Outbox& outbox, int64_t id,
                        std::string_view customer) {
  return shop.Transact([&](Transaction& transaction) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(
        transaction.Execute("insert into orders values ($1, $2)", id, customer).status());
    const std::string payload = fmt::format(R"({{"order":{}}})", id);
    return outbox.Add(transaction, {.topic = "orders", .key = customer, .payload = payload})
        .status();
  });  // Both are there, or neither.
}
// [/add]

// [relay]
absl::Status RelayUntil(const bobbin::db::Outbox& outbox, bobbin::Event& is_over) {
  bobbin::db::OutboxRelay relay(
      outbox, {.batch = 50, .attempts_max = 10}, [](const bobbin::db::OutboxMessage& message) {
        fmt::print("{} {}: {}\n", message.topic, message.id, message.payload);
        return absl::OkStatus();  // The receiver has it for good.
      });
  bobbin::VirtualThread thread = bobbin::Spawn({.name = "relay"}, [&] { return relay.Run(); });
  BOBBIN_RETURN_IF_ERROR(is_over.Wait());
  relay.Stop();
  return thread.Join();
}
// [/relay]

// [enqueue]
absl::StatusOr<int64_t> Bill(Database& shop, const bobbin::db::DurableQueue& bills, int64_t id) {
  return shop.Transact([&](Transaction& transaction) -> absl::StatusOr<int64_t> {
    const std::string order = std::to_string(id);
    BOBBIN_ASSIGN_OR_RETURN(
        const bobbin::db::Enqueued task,
        bills.Enqueue(transaction, {.payload = order, .priority = 1, .unique_key = order}));
    return task.id;  // Of the one that is there, if it is there already.
  });
}
// [/enqueue]

// [run]
absl::Status RunBills(Database& shop, const bobbin::db::DurableQueue& bills, bobbin::Event& done) {
  bobbin::db::QueueRunner runner(
      bills, {.executor = "billing", .concurrency = 4},
      [&](const bobbin::db::QueueTask& task) -> absl::Status {
        const std::string_view order = task.payload();
        absl::Status billed = shop.Transact([&](Transaction& transaction) -> absl::Status {
          BOBBIN_RETURN_IF_ERROR(
              transaction.Execute("insert into bills values (cast($1 as integer))", order)
                  .status());
          return task.CompleteIn(transaction);  // The bill, and that it is written, together.
        });
        if (billed.ok()) done.Set();
        return billed;
      });
  bobbin::VirtualThread thread = bobbin::Spawn({.name = "bills"}, [&] { return runner.Run(); });
  BOBBIN_RETURN_IF_ERROR(done.Wait());
  runner.Stop();
  return thread.Join();
}
// [/run]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(auto shop, bobbin::db::Sqlite::Open({.path = ":memory:"}));
  BOBBIN_RETURN_IF_ERROR(shop.ExecuteScript(
      "create table orders(id integer primary key, customer text); create table bills(n integer)"));
  // [open]
  BOBBIN_ASSIGN_OR_RETURN(const auto outbox, bobbin::db::Outbox::Open(shop));
  BOBBIN_ASSIGN_OR_RETURN(const auto bills,
                          bobbin::db::DurableQueue::Open(shop, {.name = "bills"}));
  // [/open]
  BOBBIN_RETURN_IF_ERROR(PlaceOrder(shop, outbox, 1, "ada"));
  BOBBIN_RETURN_IF_ERROR(PlaceOrder(shop, outbox, 2, "ada"));
  if (PlaceOrder(shop, outbox, 2, "grace").ok()) return absl::InternalError("two orders are one");
  BOBBIN_ASSIGN_OR_RETURN(const auto before, outbox.Count());
  if (before.pending != 2) return absl::InternalError("an order that was not placed is announced");

  bobbin::Event is_over;
  is_over.Set();
  BOBBIN_RETURN_IF_ERROR(RelayUntil(outbox, is_over));

  BOBBIN_ASSIGN_OR_RETURN(const int64_t first, Bill(shop, bills, 1));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t again, Bill(shop, bills, 1));
  if (first != again) return absl::InternalError("an order is billed twice");
  bobbin::Event done;
  BOBBIN_RETURN_IF_ERROR(RunBills(shop, bills, done));
  BOBBIN_ASSIGN_OR_RETURN(const auto rows, shop.Query("select count(*) from bills"));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t count, rows.Only<int64_t>());
  return count == 1 ? shop.Close() : absl::InternalError("there is one bill");
}

}  // namespace

int main() { return bobbin::Run(Main); }
