// SPDX-License-Identifier: Apache-2.0
//
// The waits of relays and runners, one by one, as docs/waits.md lists them. Before and between them
// they talk to the database.

#include <memory>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/db/durable_queue.h>
#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using db::DurableQueue;
using db::Outbox;
using db::OutboxMessage;
using db::OutboxRelay;
using db::QueueRunner;
using db::QueueTask;
using db::Sqlite;

Sqlite OpenInMemory() { return Sqlite::Open({.path = ":memory:"}).value(); }

WaitStage Relaying(Runtime&) {
  struct Quiet {
    Sqlite db = OpenInMemory();
    Outbox outbox = Outbox::Open(db).value();
    OutboxRelay relay{
        outbox, {.poll = absl::Hours(1)}, [](const OutboxMessage&) { return absl::OkStatus(); }};
  };
  auto all = std::make_shared<Quiet>();
  return {.wait = [all] { return all->relay.Run(); },
          .satisfy = [all] { all->relay.Stop(); },
          .waiters = Waiters::kOfRuntime,
          .sight_on_os_threads = Sight::kBlurred,
          .rest = Rest::kBroken};
}

// Its function waits until the event is set.
WaitStage Sending(Runtime&) {
  struct Busy {
    Sqlite db = OpenInMemory();
    Outbox outbox = Outbox::Open(db).value();
    Event go;
    OutboxRelay relay{outbox, {}, [this](const OutboxMessage&) { return go.Wait(); }};
  };
  auto all = std::make_shared<Busy>();
  EXPECT_OK(all->db.Transact([&](db::SqliteTransaction& transaction) {
    return all->outbox.Add(transaction, {.topic = "t", .payload = "x"}).status();
  }));
  return {.wait = [all] { return all->relay.SendDue().status(); },
          .satisfy = [all] { all->go.Set(); },
          .waiters = Waiters::kOfRuntime,
          .sight_on_os_threads = Sight::kBlurred,
          .rest = Rest::kBroken};
}

WaitStage Running(Runtime&) {
  struct Quiet {
    Sqlite db = OpenInMemory();
    DurableQueue queue = DurableQueue::Open(db).value();
    QueueRunner runner{
        queue, {.poll = absl::Hours(1)}, [](const QueueTask&) { return absl::OkStatus(); }};
  };
  auto all = std::make_shared<Quiet>();
  return {.wait = [all] { return all->runner.Run(); },
          .satisfy = [all] { all->runner.Stop(); },
          .waiters = Waiters::kOfRuntime,
          .sight_on_os_threads = Sight::kBlurred,
          .rest = Rest::kBroken};
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"OutboxRelay::Run", Relaying},
      {"OutboxRelay::SendDue", Sending},
      {"QueueRunner::Run", Running},
  };
  return stages;
}

BOBBIN_FOREIGN_TEST(QueueWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("queues", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
