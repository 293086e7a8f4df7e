// SPDX-License-Identifier: Apache-2.0

#include "db/src/outbox_core.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

namespace {

// Values of the column `state`.
constexpr int kOutboxPending = 0;
constexpr int kOutboxSent = 1;
constexpr int kOutboxDead = 2;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status NoDeadLetter(std::string_view operation, int64_t id) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    fmt::format("{} {}: there is no such dead letter", operation, id));
}

}  // namespace

OutboxCore::OutboxCore(Database& database, OutboxOptions options, const SqlWords& words)
    : database_(database), options_(std::move(options)), words_(words) {
  const std::string& table = options_.table;
  const std::string_view now = words_.now;
  const bool is_postgres = database_.dialect() == Dialect::kPostgres;

  // `{}`: from what the row is selected.
  const std::string add = fmt::format(
      "insert into {} (topic, key, payload, created_at, due_at) "
      "select cast($1 as text), cast($2 as text), cast($3 as {}), {}, {} {{}} returning id",
      table, words_.bytes, now, now);
  std::string end;
  if (is_postgres && !options_.channel.empty()) {
    end = fmt::format(", pg_notify('{}', '') is null", options_.channel);
  }
  add_ = fmt::format(fmt::runtime(add), "") + end;
  // The row has its number only when the lock is there.
  add_with_key_ = add_;
  if (is_postgres) {
    add_with_key_ = fmt::format(
                        "with place as materialized (select pg_advisory_xact_lock(hashtextextended("
                        "concat(cast($1 as text), chr(10), cast($2 as text)), hashtext('{}')))) ",
                        table) +
                    fmt::format(fmt::runtime(add), "from place") + end;
  }

  // The first of each key that is due, and all that have none.
  claim_heads_ = fmt::format(
      "with picked as materialized (select m.id from {0} as m where m.state = {1} and m.due_at <= "
      "{2} and (m.key = '' or not exists (select 1 from {0} as e where e.state = {1} and e.topic = "
      "m.topic and e.key = m.key and e.id < m.id)) order by m.id limit cast($1 as bigint) {3}) "
      "update {0} set claim = $2, due_at = {2} + cast($3 as bigint) "
      "where id in (select id from picked) "
      "returning id, topic, key, payload, created_at, attempts",
      table, kOutboxPending, now, words_.skip_locked);
  // Those behind the first ones in $4. The bound saves a look at all of a long row of one key.
  claim_followers_ = fmt::format(
      "with picked as materialized (select m.id from {0} as h, {0} as m where h.id in ({4}) "
      "and h.claim = $2 and h.key <> '' and m.state = {1} and m.topic = h.topic and m.key = h.key "
      "and m.id > h.id and m.id < h.id + {5} order by m.id limit cast($1 as bigint)) "
      "update {0} set claim = $2, due_at = {2} + cast($3 as bigint) "
      "where id in (select id from picked) "
      "returning id, topic, key, payload, created_at, attempts",
      table, kOutboxPending, now, words_.skip_locked,
      fmt::format(fmt::runtime(words_.numbers), "$4"), kOutboxFollowersWithin);

  const std::string of_claim =
      fmt::format("where claim = $1 and state = {} and id in ({})", kOutboxPending,
                  fmt::format(fmt::runtime(words_.numbers), "$2"));
  settle_ = fmt::format("delete from {} {}", table, of_claim);
  keep_ = fmt::format("update {} set state = {}, claim = '', due_at = {} {}", table, kOutboxSent,
                      now, of_claim);
  give_back_ = fmt::format("update {} set claim = '', due_at = {} {}", table, now, of_claim);
  give_back_all_ =
      fmt::format("update {} set claim = '', due_at = {} where claim = $1 and state = {}", table,
                  now, kOutboxPending);
  fail_ = fmt::format(
      "update {} set state = cast($3 as bigint), attempts = attempts + 1, error = $4, claim = '', "
      "due_at = {} + cast($5 as bigint) where claim = $1 and state = {} and id = $2",
      table, now, kOutboxPending);
  drop_ = fmt::format("delete from {} where state = {} and due_at <= {} - cast($1 as bigint)",
                      table, kOutboxSent, now);
  count_ = fmt::format(
      "select coalesce(sum(case when state = {1} then 1 else 0 end), 0), "
      "coalesce(sum(case when state = {2} then 1 else 0 end), 0), "
      "coalesce(sum(case when state = {3} then 1 else 0 end), 0), "
      "coalesce({4} - min(case when state = {1} then created_at end), 0) from {0}",
      table, kOutboxPending, kOutboxSent, kOutboxDead, now);
  dead_ = fmt::format(
      "select id, topic, key, payload, created_at, attempts, error from {} where state = {} "
      "order by id limit cast($1 as bigint)",
      table, kOutboxDead);
  take_dead_ =
      fmt::format("delete from {} where id = $1 and state = {} returning topic, key, payload",
                  table, kOutboxDead);
}

absl::Status OutboxCore::MakeTable() {
  const std::string& table = options_.table;
  const auto index = [&](std::string_view suffix) {
    return IndexOn(database_.dialect(), table, suffix);
  };
  // Without `if not exists` on the indexes: if the table is new, so are they.
  return MakeTableUnlessThere(
      database_, table,
      fmt::format(
          "create table {0} (id {1}, topic text not null, key text not null, payload {2} not null, "
          "state integer not null default {3}, created_at bigint not null, due_at bigint not null, "
          "attempts integer not null default 0, claim text not null default '', "
          "error text not null default '');"
          "create index {4} (id) where state = {3};"
          "create index {5} (topic, key, id) where state = {3};"
          "create index {6} (due_at) where state = {7};"
          "create index {8} (id) where state = {9};",
          table, words_.identity, words_.bytes, kOutboxPending, index("pending"), index("by_key"),
          index("sent"), kOutboxSent, index("dead"), kOutboxDead));
}

absl::StatusOr<int64_t> OutboxCore::Add(Transaction& transaction, const OutboxEntry& entry) {
  const std::string& sql = entry.key.empty() ? add_ : add_with_key_;
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, transaction.Query(UncheckedSql(sql), entry.topic,
                                                             entry.key, BytesOf(entry.payload)));
  if (rows.size() != 1) return MakeStatus(absl::StatusCode::kInternal, "add to outbox: no row");
  return rows[0].Get<int64_t>(0);
}

absl::StatusOr<OutboxCounts> OutboxCore::Count() {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(count_)));
  BOBBIN_ASSIGN_OR_RETURN(const auto row, (rows.Only<int64_t, int64_t, int64_t, int64_t>()));
  return OutboxCounts{.pending = std::get<0>(row),
                      .sent = std::get<1>(row),
                      .dead = std::get<2>(row),
                      .lag = absl::Milliseconds(std::max<int64_t>(std::get<3>(row), 0))};
}

absl::StatusOr<std::vector<DeadMessage>> OutboxCore::Dead(size_t count_max) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(dead_), count_max));
  BOBBIN_ASSIGN_OR_RETURN(const auto typed,
                          (rows.TryAs<int64_t, std::string, std::string, std::span<const std::byte>,
                                      int64_t, int64_t, std::string>()));
  std::vector<DeadMessage> dead;
  for (auto [id, topic, key, payload, created, attempts, error] : typed) {
    dead.push_back({.id = id,
                    .topic = std::move(topic),
                    .key = std::move(key),
                    .payload = TextOf(payload),
                    .created = absl::FromUnixMillis(created),
                    .attempts = attempts,
                    .error = std::move(error)});
  }
  return dead;
}

absl::StatusOr<int64_t> OutboxCore::Revive(int64_t id) {
  auto revived = database_.Transact([&](Transaction& transaction) -> absl::StatusOr<int64_t> {
    BOBBIN_ASSIGN_OR_RETURN(const Rows rows, transaction.Query(UncheckedSql(take_dead_), id));
    if (rows.empty()) return NoDeadLetter("revive", id);
    BOBBIN_ASSIGN_OR_RETURN(const auto row,
                            (rows.Only<std::string, std::string, std::span<const std::byte>>()));
    const std::string payload = TextOf(std::get<2>(row));
    return Add(transaction,
               {.topic = std::get<0>(row), .key = std::get<1>(row), .payload = payload});
  });
  if (revived.ok()) bells_.RingAll();
  return revived;
}

absl::Status OutboxCore::Discard(int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(take_dead_), id));
  return rows.empty() ? NoDeadLetter("discard", id) : absl::OkStatus();
}

// --- What relays do.

absl::StatusOr<std::vector<OutboxMessage>> OutboxCore::ClaimBy(const std::string& sql,
                                                               int64_t count_max,
                                                               const std::string& claim,
                                                               int64_t lease_millis,
                                                               const std::string& heads) {
  Rows rows;
  if (heads.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(rows,
                            database_.Query(UncheckedSql(sql), count_max, claim, lease_millis));
  } else {
    BOBBIN_ASSIGN_OR_RETURN(
        rows, database_.Query(UncheckedSql(sql), count_max, claim, lease_millis, heads));
  }
  BOBBIN_ASSIGN_OR_RETURN(const auto typed,
                          (rows.TryAs<int64_t, std::string, std::string, std::span<const std::byte>,
                                      int64_t, int64_t>()));
  std::vector<OutboxMessage> messages;
  messages.reserve(typed.size());
  for (auto [id, topic, key, payload, created, attempts] : typed) {
    messages.push_back({.id = id,
                        .topic = std::move(topic),
                        .key = std::move(key),
                        .payload = TextOf(payload),
                        .created = absl::FromUnixMillis(created),
                        .attempt = attempts + 1});
  }
  return messages;
}

absl::StatusOr<std::vector<OutboxMessage>> OutboxCore::Claim(const std::string& claim,
                                                             size_t count_max,
                                                             absl::Duration lease) {
  const int64_t millis = absl::ToInt64Milliseconds(lease);
  BOBBIN_ASSIGN_OR_RETURN(
      std::vector<OutboxMessage> messages,
      ClaimBy(claim_heads_, static_cast<int64_t>(count_max), claim, millis, {}));
  std::vector<int64_t> heads;
  for (const OutboxMessage& message : messages) {
    if (!message.key.empty()) heads.push_back(message.id);
  }
  if (messages.size() < count_max && !heads.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(
        std::vector<OutboxMessage> followers,
        ClaimBy(claim_followers_, static_cast<int64_t>(count_max - messages.size()), claim, millis,
                Numbers(heads)));
    std::move(followers.begin(), followers.end(), std::back_inserter(messages));
  }
  std::sort(messages.begin(), messages.end(),
            [](const OutboxMessage& a, const OutboxMessage& b) { return a.id < b.id; });
  return messages;
}

absl::Status OutboxCore::SettleSent(const std::string& claim, std::span<const int64_t> ids,
                                    absl::Duration keep) {
  const std::string& sql = keep > absl::ZeroDuration() ? keep_ : settle_;
  BOBBIN_ASSIGN_OR_RETURN(const int64_t settled,
                          database_.Execute(UncheckedSql(sql), claim, Numbers(ids)));
  if (settled == static_cast<int64_t>(ids.size())) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAborted,
                    fmt::format("settle outbox: {} of {} were not held any more",
                                static_cast<int64_t>(ids.size()) - settled, ids.size()));
}

absl::Status OutboxCore::SettleFailed(const std::string& claim, const Failure& failure) {
  const int state = failure.then == Failure::Then::kDead ? kOutboxDead : kOutboxPending;
  return database_
      .Execute(UncheckedSql(fail_), claim, failure.id, state, failure.error,
               absl::ToInt64Milliseconds(failure.pause))
      .status();
}

absl::Status OutboxCore::GiveBack(const std::string& claim, std::span<const int64_t> ids) {
  return database_.Execute(UncheckedSql(give_back_), claim, Numbers(ids)).status();
}

absl::Status OutboxCore::GiveBackAll(const std::string& claim) {
  return database_.Execute(UncheckedSql(give_back_all_), claim).status();
}

absl::StatusOr<int64_t> OutboxCore::DropSent(absl::Duration keep) {
  return database_.Execute(UncheckedSql(drop_), absl::ToInt64Milliseconds(keep));
}

}  // namespace bobbin::db::internal
