// SPDX-License-Identifier: Apache-2.0
//
// Relays that are killed, and a server that goes away.

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/sleep.h>

#include "tests/db/crash.h"
#include "tests/db/each_database.h"
#include "tests/services/postgres_service.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/seed.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using test::AwaitTrue;
using test::Child;
using test::Journal;
using test::PostgresService;
using test::Rounds;

constexpr int kKeys = 4;

using OpenDatabase = std::function<std::unique_ptr<Database>()>;

void InRuntime(const std::function<void()>& body) {
  test::WithRuntime({.carriers = 2, .poller = io::AutoPoller()},
                    [&](Runtime& runtime) { EXPECT_OK(runtime.Spawn([&] { body(); }).Join()); });
}

// Message n of key k is the number n * kKeys + k + 1.
absl::Status AddMessages(Database& database, int each) {
  BOBBIN_ASSIGN_OR_RETURN(const Outbox outbox, Outbox::Open(database));
  return database.Transact([&](Transaction& tx) -> absl::Status {
    for (int n = 0; n < each; ++n) {
      for (int k = 0; k < kKeys; ++k) {
        const std::string key = std::to_string(k);
        const std::string payload = std::to_string(n * kKeys + k + 1);
        BOBBIN_RETURN_IF_ERROR(
            outbox.Add(tx, {.topic = "t", .key = key, .payload = payload}).status());
      }
    }
    return absl::OkStatus();
  });
}

OutboxRelay::Send WriteInto(Journal& journal) {
  return [&journal](const OutboxMessage& message) -> absl::Status {
    Yield();
    uint64_t number = 0;
    if (!absl::SimpleAtoi(message.payload, &number)) return absl::InvalidArgumentError("no number");
    journal.Write(number);
    return absl::OkStatus();
  };
}

// Nothing is missing, and none was sent before the one in front of it, of its key, had been.
void ExpectComplete(const Journal& journal, int each) {
  std::map<uint64_t, uint64_t> next;
  for (const uint64_t number : journal.Read()) {
    const uint64_t key = (number - 1) % kKeys;
    const uint64_t n = (number - 1) / kKeys;
    ASSERT_LE(n, next[key]) << "key " << key;
    next[key] = std::max(next[key], n + 1);
  }
  for (uint64_t k = 0; k < kKeys; ++k) EXPECT_EQ(next[k], static_cast<uint64_t>(each)) << k;
}

// Sends all there is. What somebody who was killed has claimed is his no longer, for there is
// nobody else.
absl::Status SendAll(const OpenDatabase& open, Journal& journal) {
  const std::unique_ptr<Database> database = open();
  BOBBIN_ASSIGN_OR_RETURN(const Outbox outbox, Outbox::Open(*database));
  OutboxRelay relay(outbox, {.batch = 10, .concurrency = 3}, WriteInto(journal));
  while (true) {
    BOBBIN_RETURN_IF_ERROR(
        database->Execute("update outbox set due_at = 0 where claim <> ''").status());
    BOBBIN_RETURN_IF_ERROR(relay.SendDue().status());
    BOBBIN_ASSIGN_OR_RETURN(const OutboxCounts counts, outbox.Count());
    if (counts.pending == 0) return database->Close();
    BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::milliseconds(1)));
  }
}

void KillRelays(const OpenDatabase& open) {
  test::Random random(test::Seed());
  Journal journal;
  const int kills = Rounds(100);
  const int each = kills * 5;
  InRuntime([&] { EXPECT_OK(AddMessages(*open(), each)); });
  for (int i = 0; i < kills; ++i) {
    // In the middle of a batch, or of what is done after it.
    const size_t enough = journal.size() + random.Below(15);
    Child child([&] { return SendAll(open, journal); });
    while (journal.size() < enough && !child.HasEnded()) ::sched_yield();
    for (uint64_t spins = random.Below(2000); spins > 0; --spins) journal.size();
    child.Kill();
  }
  Child last([&] { return SendAll(open, journal); });
  EXPECT_EQ(last.Wait(), 0);
  ExpectComplete(journal, each);
}

TEST(OutboxCrashTest, KilledAHundredTimesOnPostgresNothingIsLostAndKeysKeepTheirOrder) {
  std::optional<test::Schema> schema;
  InRuntime([&] { schema.emplace(); });
  const std::string conninfo = schema->conninfo();
  KillRelays([conninfo] { return test::OpenPostgres(conninfo, 4); });
  InRuntime([&] { schema.reset(); });
}

TEST(OutboxCrashTest, KilledAHundredTimesOnSqliteNothingIsLostAndKeysKeepTheirOrder) {
  const test::SqliteFolder folder;
  KillRelays([path = folder.path()] { return test::OpenSqliteFile(path); });
}

// None of the processes is killed, and so nothing is sent twice.
void ShareBetweenProcesses(const OpenDatabase& open) {
  Journal journal;
  const int each = Rounds(100);
  InRuntime([&] { EXPECT_OK(AddMessages(*open(), each)); });
  const auto send = [&]() -> absl::Status {
    const std::unique_ptr<Database> database = open();
    BOBBIN_ASSIGN_OR_RETURN(const Outbox outbox, Outbox::Open(*database));
    OutboxRelay relay(outbox, {.batch = 3, .lease = absl::Hours(1)}, WriteInto(journal));
    while (true) {
      BOBBIN_RETURN_IF_ERROR(relay.SendDue().status());
      BOBBIN_ASSIGN_OR_RETURN(const OutboxCounts counts, outbox.Count());
      if (counts.pending == 0) return database->Close();
      BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::milliseconds(1)));
    }
  };
  Child first(send);
  Child second(send);
  EXPECT_EQ(first.Wait(), 0);
  EXPECT_EQ(second.Wait(), 0);
  ExpectComplete(journal, each);
  EXPECT_EQ(journal.size(), static_cast<size_t>(kKeys * each));
}

TEST(OutboxCrashTest, TwoProcessesShareTheWorkOnPostgres) {
  std::optional<test::Schema> schema;
  InRuntime([&] { schema.emplace(); });
  const std::string conninfo = schema->conninfo();
  ShareBetweenProcesses([conninfo] { return test::OpenPostgres(conninfo, 4); });
  InRuntime([&] { schema.reset(); });
}

TEST(OutboxCrashTest, TwoProcessesShareTheWorkOnSqlite) {
  const test::SqliteFolder folder;
  ShareBetweenProcesses([path = folder.path()] { return test::OpenSqliteFile(path); });
}

void RestartServer(void (PostgresService::*end)()) {
  PostgresService service;
  // What was committed must outlive a crash of the server, as it does with a setting of its own.
  const std::string conninfo = service.conninfo() + " options='-c synchronous_commit=on'";
  Journal journal;
  constexpr int kEach = 100;
  test::WithRuntime({.carriers = 2, .poller = io::AutoPoller()}, [&](Runtime& runtime) {
    std::unique_ptr<Database> database;
    std::unique_ptr<OutboxRelay> relay;
    ASSERT_OK(runtime
                  .Spawn([&]() -> absl::Status {
                    database = test::OpenPostgres(conninfo, 4);
                    BOBBIN_RETURN_IF_ERROR(AddMessages(*database, kEach));
                    BOBBIN_ASSIGN_OR_RETURN(const Outbox outbox, Outbox::Open(*database));
                    relay = std::make_unique<OutboxRelay>(
                        outbox, OutboxRelayOptions{.batch = 10, .poll = absl::Milliseconds(20)},
                        WriteInto(journal));
                    return absl::OkStatus();
                  })
                  .Join());
    VirtualThread thread = runtime.Spawn([&] { return relay->Run(); });
    for (const size_t enough : {size_t{50}, size_t{150}}) {
      AwaitTrue([&] { return journal.size() >= enough; });
      (service.*end)();
      service.Resume();
    }
    const auto count_distinct = [&] {
      const std::vector<uint64_t> numbers = journal.Read();
      return std::set<uint64_t>(numbers.begin(), numbers.end()).size();
    };
    AwaitTrue([&] { return count_distinct() == static_cast<size_t>(kKeys * kEach); });
    relay->Stop();
    EXPECT_OK(thread.Join());
    EXPECT_OK(runtime
                  .Spawn([&] {
                    relay.reset();
                    database.reset();
                  })
                  .Join());
  });
  ExpectComplete(journal, kEach);
}

TEST(OutboxCrashTest, AfterAShutdownOfTheServerTheRelayGoesOn) {
  RestartServer(&PostgresService::Pause);
}

TEST(OutboxCrashTest, AfterACrashOfTheServerTheRelayGoesOn) {
  RestartServer(&PostgresService::Kill);
}

}  // namespace
}  // namespace bobbin::db
