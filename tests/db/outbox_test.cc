// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/backoff.h>
#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/db/pg_bell.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/each_database.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using test::AwaitTrue;
using test::IsOkAndHolds;
using test::OnEachDatabase;
using test::Rounds;
using test::Schema;
using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What was sent, in order.
class Receiver {
 public:
  absl::Status Receive(const OutboxMessage& message) {
    const MutexLock lock(mutex_);
    messages_.push_back(message);
    return absl::OkStatus();
  }
  OutboxRelay::Send send() {
    return [this](const OutboxMessage& message) { return Receive(message); };
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return messages_.size();
  }
  std::vector<OutboxMessage> messages() const {
    const MutexLock lock(mutex_);
    return messages_;
  }
  std::vector<std::string> payloads(std::string_view key) const {
    std::vector<std::string> payloads;
    for (const OutboxMessage& message : messages()) {
      if (message.key == key) payloads.push_back(message.payload);
    }
    return payloads;
  }

 private:
  mutable Mutex mutex_;
  std::vector<OutboxMessage> messages_ ABSL_GUARDED_BY(mutex_);
};

Outbox MustOpen(Database& database, OutboxOptions options = {}) {
  absl::StatusOr<Outbox> outbox = Outbox::Open(database, std::move(options));
  BOBBIN_CHECK(outbox.ok(), MessageOf(outbox.status()));
  return *std::move(outbox);
}

void Add(Database& database, const Outbox& outbox, const OutboxEntry& entry) {
  EXPECT_OK(database.Transact([&](Transaction& tx) { return outbox.Add(tx, entry).status(); }));
}

// Lets so much time go by for what waits in the table.
void Pass(Database& database, absl::Duration time) {
  EXPECT_OK(
      database.Execute("update outbox set due_at = due_at - $1", absl::ToInt64Milliseconds(time)));
}

BOBBIN_EPOLL_TEST(OutboxTest, WhatWasCommittedIsSentAndWhatWasRolledBackIsNot) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    const std::string payload("a\0b\xff", 4);
    Add(db, outbox, {.topic = "orders", .key = "ada", .payload = payload});
    EXPECT_THAT(db.Transact([&](Transaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(outbox.Add(tx, {.topic = "orders", .payload = "never"}).status());
      return absl::AbortedError("no");
    }),
                StatusIs(test::kAborted));
    Add(db, outbox, {.topic = "mails", .payload = ""});
    EXPECT_EQ(outbox.Count()->pending, 2);

    Receiver receiver;
    OutboxRelay relay(outbox, {}, receiver.send());
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(2));
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
    std::vector<OutboxMessage> messages = receiver.messages();
    ASSERT_EQ(messages.size(), 2U);
    if (messages[0].topic != "orders") std::swap(messages[0], messages[1]);
    EXPECT_EQ(messages[0].key, "ada");
    EXPECT_EQ(messages[0].payload, payload);
    EXPECT_EQ(messages[0].attempt, 1);
    EXPECT_EQ(messages[1].topic, "mails");
    EXPECT_GT(messages[1].created, absl::FromUnixSeconds(1'700'000'000));
    EXPECT_EQ(relay.Statistics().sent, 2U);
    const absl::StatusOr<OutboxCounts> counts = outbox.Count();
    ASSERT_OK(counts);
    EXPECT_EQ(counts->pending + counts->sent + counts->dead, 0);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, EachKeyKeepsItsOrder) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    constexpr int kKeys = 5;
    constexpr int kEach = 12;
    ASSERT_OK(db.Transact([&](Transaction& tx) -> absl::Status {
      for (int n = 0; n < kEach; ++n) {
        for (int k = 0; k < kKeys; ++k) {
          const std::string key = std::to_string(k);
          const std::string payload = std::to_string(n);
          BOBBIN_RETURN_IF_ERROR(
              outbox.Add(tx, {.topic = "t", .key = key, .payload = payload}).status());
        }
      }
      return absl::OkStatus();
    }));
    Receiver receiver;
    // Batches that end within keys, and keys at the same time.
    OutboxRelay relay(outbox, {.batch = 7, .concurrency = 3}, [&](const OutboxMessage& message) {
      Yield();
      return receiver.Receive(message);
    });
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(kKeys * kEach));
    std::vector<std::string> expected;
    for (int n = 0; n < kEach; ++n) expected.push_back(std::to_string(n));
    for (int k = 0; k < kKeys; ++k) EXPECT_EQ(receiver.payloads(std::to_string(k)), expected);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, AKeyThatFailsWaitsAndHoldsUpNoOther) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    for (const std::string_view key : {"bad", "good"}) {
      for (const std::string_view payload : {"1", "2", "3"}) {
        Add(db, outbox, {.topic = "t", .key = key, .payload = payload});
      }
    }
    Receiver receiver;
    std::atomic<int> attempts{0};
    std::atomic<bool> is_down{true};
    OutboxRelay relay(outbox, {.backoff = {.first = absl::Hours(1), .max = absl::Hours(24)}},
                      [&](const OutboxMessage& message) -> absl::Status {
                        if (message.key == "bad" && is_down) {
                          ++attempts;
                          return absl::UnavailableError("down");
                        }
                        return receiver.Receive(message);
                      });
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(3));
    EXPECT_THAT(receiver.payloads("good"), ElementsAre("1", "2", "3"));
    EXPECT_THAT(receiver.payloads("bad"), IsEmpty());
    EXPECT_EQ(attempts, 1);
    // It is not tried before its time, and nothing overtakes it.
    Add(db, outbox, {.topic = "t", .key = "bad", .payload = "4"});
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
    EXPECT_EQ(attempts, 1);
    Pass(db, absl::Hours(2));
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
    EXPECT_EQ(attempts, 2);
    is_down = false;
    Pass(db, absl::Hours(1));  // The second pause is longer: from 1.5 to 2.5 hours.
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
    Pass(db, absl::Hours(2));
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(4));
    EXPECT_THAT(receiver.payloads("bad"), ElementsAre("1", "2", "3", "4"));
    EXPECT_EQ(receiver.messages()[3].attempt, 3);
    EXPECT_EQ(relay.Statistics().retried, 2U);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, APoisonMessageBecomesADeadLetter) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    for (const std::string_view payload : {"poison", "throw", "2", "wrong", "3"}) {
      Add(db, outbox, {.topic = "t", .key = "k", .payload = payload});
    }
    Receiver receiver;
    std::atomic<bool> is_cured{false};
    OutboxRelay relay(outbox, {.attempts_max = 2, .backoff = {.first = absl::ZeroDuration()}},
                      [&](const OutboxMessage& message) -> absl::Status {
                        if (!is_cured && message.payload == "poison") {
                          return absl::InternalError("it is poison");
                        }
                        if (!is_cured && message.payload == "throw") throw 1;
                        if (message.payload == "wrong") return absl::InvalidArgumentError("no");
                        return receiver.Receive(message);
                      });
    AwaitTrue([&] {
      EXPECT_OK(relay.SendDue());
      return receiver.size() == 2;
    });
    EXPECT_THAT(receiver.payloads("k"), ElementsAre("2", "3"));
    const OutboxRelayStatistics statistics = relay.Statistics();
    EXPECT_EQ(statistics.dead, 3U);
    EXPECT_EQ(statistics.retried, 2U);

    const auto dead = outbox.Dead();
    ASSERT_OK(dead);
    ASSERT_EQ(dead->size(), 3U);
    EXPECT_EQ((*dead)[0].payload, "poison");
    EXPECT_EQ((*dead)[0].attempts, 2);
    EXPECT_THAT((*dead)[0].error, HasSubstr("it is poison"));
    EXPECT_THAT((*dead)[1].error, HasSubstr("exception"));
    EXPECT_EQ((*dead)[2].attempts, 1);  // Trying again would not have helped.
    EXPECT_EQ(outbox.Count()->dead, 3);

    is_cured = true;
    EXPECT_OK(outbox.Revive((*dead)[0].id));
    EXPECT_OK(outbox.Discard((*dead)[2].id));
    EXPECT_THAT(outbox.Discard((*dead)[2].id), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(outbox.Revive((*dead)[0].id).status(), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(1));
    EXPECT_THAT(receiver.payloads("k"), ElementsAre("2", "3", "poison"));
    EXPECT_EQ(outbox.Dead()->size(), 1U);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, ABatchOfADeadRelayIsSentWhenItsLeaseIsOver) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    for (const std::string_view payload : {"1", "2"}) {
      Add(db, outbox, {.topic = "t", .key = "k", .payload = payload});
    }
    // It claims all, and does not come back before the other one has taken over.
    Event is_sending;
    Event go_on;
    OutboxRelay dead(outbox, {.lease = absl::Hours(1)}, [&](const OutboxMessage&) {
      is_sending.Set();
      return go_on.Wait();
    });
    VirtualThread thread = Spawn([&] { return dead.SendDue().status(); });
    ASSERT_OK(is_sending.Wait());
    Receiver receiver;
    OutboxRelay relay(outbox, {}, receiver.send());
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
    Pass(db, absl::Hours(2));
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(2));
    EXPECT_THAT(receiver.payloads("k"), ElementsAre("1", "2"));
    // The dead one settles nothing that is not its own any more.
    Add(db, outbox, {.topic = "t", .key = "k", .payload = "3"});
    go_on.Set();
    EXPECT_OK(thread.Join());
    EXPECT_EQ(dead.Statistics().sent, 3U);
    EXPECT_EQ(relay.Statistics().sent, 2U);
    EXPECT_EQ(outbox.Count()->pending, 0);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, ARelayIsToldOfCommitsAndStops) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    Receiver receiver;
    // It would not look by itself.
    OutboxRelay relay(outbox, {.poll = absl::Hours(1)}, receiver.send());
    VirtualThread thread = Spawn([&] { return relay.Run(); });
    for (size_t i = 0; i < 20; ++i) {
      Add(db, outbox, {.topic = "t", .key = "k", .payload = std::to_string(i)});
      if (i % 3 == 0) AwaitTrue([&] { return receiver.size() == i + 1; });
    }
    AwaitTrue([&] { return receiver.size() == 20; });
    relay.Stop();
    EXPECT_OK(thread.Join());
    EXPECT_OK(relay.Run());
    Add(db, outbox, {.topic = "t", .payload = "late"});
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(0));
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, ARetryIsSentWhenItIsDueWithoutPolling) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    Receiver receiver;
    OutboxRelay relay(outbox, {.backoff = {.first = absl::Milliseconds(5)}, .poll = absl::Hours(1)},
                      [&](const OutboxMessage& message) {
                        return message.attempt < 4 ? absl::UnavailableError("not yet")
                                                   : receiver.Receive(message);
                      });
    Add(db, outbox, {.topic = "t", .key = "k", .payload = "x"});
    VirtualThread thread = Spawn([&] { return relay.Run(); });
    AwaitTrue([&] { return receiver.size() == 1; });
    relay.Stop();
    EXPECT_OK(thread.Join());
    EXPECT_EQ(relay.Statistics().retried, 3U);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, ACancelledRelayGivesBackWhatItHasNotSent) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    for (const std::string_view payload : {"1", "2", "3"}) {
      Add(db, outbox, {.topic = "t", .key = "k", .payload = payload});
    }
    Event is_sending;
    Event never;
    Receiver receiver;
    OutboxRelay relay(outbox, {.lease = absl::Hours(1)}, [&](const OutboxMessage& message) {
      if (message.payload == "1") return receiver.Receive(message);
      is_sending.Set();
      return never.Wait();
    });
    VirtualThread thread = Spawn([&] { return relay.Run(); });
    ASSERT_OK(is_sending.Wait());
    thread.Cancel();
    EXPECT_THAT(thread.Join(), StatusIs(test::kCancelled));
    const OutboxRelayStatistics statistics = relay.Statistics();
    EXPECT_EQ(statistics.sent, 1U);
    EXPECT_EQ(statistics.given_back, 2U);
    EXPECT_EQ(statistics.retried, 0U);
    // At once, not when the lease is over; and it does not count as an attempt.
    OutboxRelay other(outbox, {}, receiver.send());
    EXPECT_THAT(other.SendDue(), IsOkAndHolds(2));
    EXPECT_THAT(receiver.payloads("k"), ElementsAre("1", "2", "3"));
    EXPECT_EQ(receiver.messages()[1].attempt, 1);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, SentMessagesAreKeptAndDropped) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    Add(db, outbox, {.topic = "t", .payload = "x"});
    Receiver receiver;
    OutboxRelay relay(outbox, {.keep_sent = absl::Hours(1)}, receiver.send());
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(1));
    EXPECT_EQ(outbox.Count()->sent, 1);
    EXPECT_EQ(outbox.Count()->pending, 0);
    Pass(db, absl::Hours(2));
    OutboxRelay later(outbox, {.keep_sent = absl::Hours(1)}, receiver.send());
    EXPECT_THAT(later.SendDue(), IsOkAndHolds(0));
    EXPECT_EQ(outbox.Count()->sent, 0);
    EXPECT_EQ(receiver.size(), 1U);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, ItsNumbersAreMetrics) {
  OnEachDatabase([](Database& db) {
    Metrics metrics;
    const Outbox outbox = MustOpen(db);
    Add(db, outbox, {.topic = "t", .payload = "good"});
    Add(db, outbox, {.topic = "t", .payload = "bad"});
    Add(db, outbox, {.topic = "t", .payload = "ugly"});
    OutboxRelay relay(outbox, {.backoff = {.first = absl::Hours(1)}, .metrics = &metrics},
                      [](const OutboxMessage& message) -> absl::Status {
                        if (message.payload == "bad") return absl::UnavailableError("down");
                        if (message.payload == "ugly") return absl::InvalidArgumentError("no");
                        return absl::OkStatus();
                      });
    EXPECT_THAT(relay.SendDue(), IsOkAndHolds(1));
    const MetricsSnapshot snapshot = metrics.Snapshot();
    const std::vector<Attribute> which = {{"outbox", "outbox"}};
    EXPECT_EQ(snapshot.Value("bobbin.outbox.sent", which), 1);
    EXPECT_EQ(snapshot.Value("bobbin.outbox.retried", which), 1);
    EXPECT_EQ(snapshot.Value("bobbin.outbox.dead", which), 1);
    EXPECT_EQ(snapshot.Value("bobbin.outbox.pending", which), 1);
    EXPECT_EQ(snapshot.Value("bobbin.outbox.dead_letters", which), 1);
  });
}

BOBBIN_EPOLL_TEST(OutboxTest, NamesAreCheckedAndTablesAreMadeOnce) {
  OnEachDatabase([](Database& db) {
    EXPECT_THAT(Outbox::Open(db, {.table = "a b"}).status(), StatusIs(test::kInvalidArgument));
    EXPECT_THAT(Outbox::Open(db, {.channel = "a'b"}).status(), StatusIs(test::kInvalidArgument));
    TaskGroup group;
    for (int i = 0; i < 6; ++i) {
      group.Spawn([&] { return Outbox::Open(db, {.table = "mails"}).status(); });
    }
    EXPECT_OK(group.Wait());
    EXPECT_OK(db.Query("select id, topic, key, payload from mails"));
  });
}

// --- PostgreSQL.

BOBBIN_IO_TEST(OutboxTest, ARelayOfAnotherProcessIsNotified) {
  const Schema schema;
  PgPool here = schema.Open();
  PgPool there = schema.Open();
  const Outbox outbox = MustOpen(here, {.channel = schema.name()});
  const Outbox same = MustOpen(there);
  Receiver receiver;
  OutboxRelay relay(same, {.poll = absl::Hours(1)}, receiver.send());
  const absl::StatusOr<PgBell> bell =
      PgBell::Start({.conninfo = schema.conninfo()}, schema.name(), [&] { relay.Ring(); });
  ASSERT_OK(bell);
  VirtualThread thread = Spawn([&] { return relay.Run(); });
  for (size_t i = 1; i <= 5; ++i) {
    Add(here, outbox, {.topic = "t", .key = "k", .payload = std::to_string(i)});
    AwaitTrue([&] { return receiver.size() == i; });
  }
  relay.Stop();
  EXPECT_OK(thread.Join());
}

// Transactions of one key are kept apart, so that the order of their commits is that of their
// numbers, even if the first one takes its time.
BOBBIN_EPOLL_TEST(OutboxTest, TheOrderOfAKeyIsThatOfTheCommits) {
  const Schema schema;
  PgPool pool = schema.Open();
  const Outbox outbox = MustOpen(pool);
  Event has_added;
  Event go_on;
  std::atomic<bool> is_second_committed{false};
  Mutex mutex;
  std::vector<int> commits;
  const auto note = [&](int number) {
    return [&, number] {
      const MutexLock lock(mutex);
      commits.push_back(number);
    };
  };
  TaskGroup group;
  group.Spawn([&] {
    return pool.Transact([&](PgTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(outbox.Add(tx, {.topic = "t", .key = "k", .payload = "1"}).status());
      has_added.Set();
      tx.AfterCommit(note(1));
      return go_on.Wait();
    });
  });
  group.Spawn([&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(has_added.Wait());
    return pool.Transact([&](PgTransaction& tx) -> absl::Status {
      tx.AfterCommit([&] { is_second_committed = true; });
      // Another key need not wait.
      BOBBIN_RETURN_IF_ERROR(
          outbox.Add(tx, {.topic = "t", .key = "other", .payload = "1"}).status());
      return outbox.Add(tx, {.topic = "t", .key = "k", .payload = "2"}).status();
    });
  });
  ASSERT_OK(has_added.Wait());
  // Until the second one waits for the lock.
  PgPool look = schema.Open(1);
  AwaitTrue([&] {
    const auto rows = look.Query(
        "select count(*) from pg_locks where locktype = 'advisory' and not granted and database = "
        "(select oid from pg_database where datname = current_database()) and pid in (select pid "
        "from pg_stat_activity where query like '%pg_advisory_xact_lock%')");
    EXPECT_OK(rows);
    return rows->Only<int64_t>().value() > 0;
  });
  EXPECT_FALSE(is_second_committed);
  go_on.Set();
  EXPECT_OK(group.Wait());
  Receiver receiver;
  OutboxRelay relay(outbox, {}, receiver.send());
  EXPECT_THAT(relay.SendDue(), IsOkAndHolds(3));
  EXPECT_THAT(receiver.payloads("k"), ElementsAre("1", "2"));
}

// --- Many at once.

BOBBIN_IO_TEST(OutboxTest, RelaysShareTheWorkAndSendEachMessageOnceInOrder) {
  OnEachDatabase([](Database& db) {
    const Outbox outbox = MustOpen(db);
    constexpr int kKeys = 8;
    const int each = Rounds(12);
    Receiver receiver;
    std::vector<std::unique_ptr<OutboxRelay>> relays;
    for (int i = 0; i < 3; ++i) {
      relays.push_back(std::make_unique<OutboxRelay>(
          outbox, OutboxRelayOptions{.batch = 5, .concurrency = 3, .lease = absl::Hours(1)},
          [&](const OutboxMessage& message) {
            Yield();
            return receiver.Receive(message);
          }));
    }
    TaskGroup running;
    for (const auto& relay : relays) running.Spawn([&relay] { return relay->Run(); });
    TaskGroup adding;
    for (int k = 0; k < kKeys; ++k) {
      adding.Spawn([&, k]() -> absl::Status {
        const std::string key = std::to_string(k);
        for (int n = 0; n < each; ++n) {
          const std::string payload = std::to_string(n);
          BOBBIN_RETURN_IF_ERROR(db.Transact([&](Transaction& tx) {
            return outbox.Add(tx, {.topic = "t", .key = key, .payload = payload}).status();
          }));
        }
        return absl::OkStatus();
      });
    }
    EXPECT_OK(adding.Wait());
    AwaitTrue([&] { return receiver.size() >= static_cast<size_t>(kKeys * each); });
    for (const auto& relay : relays) relay->Stop();
    EXPECT_OK(running.Wait());
    std::vector<std::string> expected;
    for (int n = 0; n < each; ++n) expected.push_back(std::to_string(n));
    for (int k = 0; k < kKeys; ++k) EXPECT_EQ(receiver.payloads(std::to_string(k)), expected);
    EXPECT_EQ(outbox.Count()->pending, 0);
  });
}

TEST(BackoffTest, ItGrowsUpToItsMaximumGiveOrTake) {
  const Backoff backoff = {.first = absl::Seconds(1), .max = absl::Seconds(10), .jitter = 0.5};
  EXPECT_EQ(backoff.After(1, 0), absl::Milliseconds(500));
  EXPECT_EQ(backoff.After(3, 0), absl::Seconds(2));
  EXPECT_EQ(backoff.After(1'000'000, 0), absl::Seconds(5));
  EXPECT_LE(backoff.After(3, ~uint64_t{0}), absl::Seconds(6));
  EXPECT_GT(backoff.After(3, ~uint64_t{0}), absl::Seconds(5));
  const Backoff plain = {.first = absl::Seconds(1), .growth = 1.0, .jitter = 0.0};
  EXPECT_EQ(plain.After(5, 12345), absl::Seconds(1));
}

}  // namespace
}  // namespace bobbin::db
