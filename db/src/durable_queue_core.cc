// SPDX-License-Identifier: Apache-2.0

#include "db/src/durable_queue_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

namespace {

// Values of the column `state`.
constexpr int kQueueReady = 0;
constexpr int kQueueHidden = 1;
constexpr int kQueueDone = 2;
constexpr int kQueueDead = 3;

// The condition for rows of a state, as the table has it.
std::string StateCondition(QueueState state) {
  switch (state) {
    case QueueState::kReady:
      return fmt::format("state = {}", kQueueReady);
    case QueueState::kWaiting:
      return fmt::format("state = {} and owner = ''", kQueueHidden);
    case QueueState::kRunning:
      return fmt::format("state = {} and owner <> ''", kQueueHidden);
    case QueueState::kDone:
      return fmt::format("state = {}", kQueueDone);
    case QueueState::kDead:
      return fmt::format("state = {}", kQueueDead);
  }
  return "false";
}

QueueState StateOf(int64_t state, const std::string& owner) {
  switch (state) {
    case kQueueReady:
      return QueueState::kReady;
    case kQueueHidden:
      return owner.empty() ? QueueState::kWaiting : QueueState::kRunning;
    case kQueueDone:
      return QueueState::kDone;
    default:
      return QueueState::kDead;
  }
}

DurableQueueCore::Step StepOf(int64_t changed) {
  return changed == 1 ? DurableQueueCore::Step::kMade : DurableQueueCore::Step::kLost;
}

}  // namespace

DurableQueueCore::DurableQueueCore(Database& database, DurableQueueOptions options,
                                   const SqlWords& words)
    : database_(database), options_(std::move(options)), words_(words) {
  const std::string& table = options_.table;
  const std::string_view now = words_.now;
  const auto numbers = [&](std::string_view value) {
    return fmt::format(fmt::runtime(words_.numbers), value);
  };

  enqueue_ = fmt::format(
      "insert into {0} (queue, payload, priority, state, created_at, due_at, attempts_max, "
      "unique_key) values ($1, cast($2 as {1}), cast($3 as bigint), "
      "case when cast($4 as bigint) > {2} then {3} else {4} end, {2}, cast($4 as bigint), "
      "cast($5 as bigint), nullif(cast($6 as text), '')) "
      "on conflict (queue, unique_key) where state < {5} and unique_key is not null do nothing "
      "returning id",
      table, words_.bytes, now, kQueueHidden, kQueueReady, kQueueDone);
  if (database_.dialect() == Dialect::kPostgres && !options_.channel.empty()) {
    enqueue_ += fmt::format(", pg_notify('{}', '') is null", options_.channel);
  }
  find_unique_ = fmt::format(
      "select id from {} where queue = $1 and unique_key = $2 and state < {}", table, kQueueDone);

  const std::string is_exhausted = "owner <> '' and attempts >= attempts_max";
  promote_ = fmt::format(
      "with picked as materialized (select m.id from {0} as m where m.queue = $1 and m.state = {1} "
      "and m.due_at <= {2} order by m.due_at limit {3} {4}) "
      "update {0} set state = case when {5} then {6} else {7} end, "
      "error = case when {5} then 'the last attempt lost its lease' else error end, owner = '' "
      "where id in (select id from picked) returning state",
      table, kQueueHidden, now, kQueuePromotedMax, words_.skip_locked, is_exhausted, kQueueDead,
      kQueueReady);
  claim_ = fmt::format(
      "with picked as materialized (select m.id from {0} as m where m.queue = $1 and m.state = {1} "
      "order by m.priority desc, m.id limit cast($2 as bigint) {2}) "
      "update {0} set state = {3}, owner = $3, token = token + 1, attempts = attempts + 1, "
      "due_at = {4} + cast($4 as bigint) where id in (select id from picked) "
      "returning id, token, payload, priority, attempts, attempts_max, created_at",
      table, kQueueReady, words_.skip_locked, kQueueHidden, now);
  next_due_ = fmt::format("select min(due_at) - {} from {} where queue = $1 and state = {}", now,
                          table, kQueueHidden);

  // Not one by one, and without waiting for those that a transaction of a body has locked.
  extend_ = fmt::format(
      "with picked as materialized (select m.id from {0} as m where m.id in ({1}) and m.state = "
      "{2} "
      "and m.owner = $1 {3}) update {0} set due_at = {4} + cast($3 as bigint) "
      "where id in (select id from picked)",
      table, numbers("$2"), kQueueHidden, words_.skip_locked, now);
  look_ = fmt::format("select id, token from {} where id in ({}) and state = {} and owner = $1",
                      table, numbers("$2"), kQueueHidden);

  const std::string of_run =
      fmt::format("where id = $1 and token = $2 and state = {}", kQueueHidden);
  take_ = fmt::format("delete from {} {}", table, of_run);
  keep_ = fmt::format("update {} set state = {}, owner = '', due_at = {} {}", table, kQueueDone,
                      now, of_run);
  fail_ = fmt::format(
      "update {} set state = cast($3 as bigint), owner = '', due_at = {} + cast($4 as bigint), "
      "error = $5 {}",
      table, now, of_run);
  const std::string back =
      fmt::format("update {} set state = {}, owner = '', due_at = {}, attempts = attempts - 1",
                  table, kQueueReady, now);
  release_ = fmt::format("{} {}", back, of_run);
  release_others_ =
      fmt::format("{} where queue = $1 and owner = $2 and state = {} and id not in ({})", back,
                  kQueueHidden, numbers("$3"));
  drop_ = fmt::format(
      "delete from {} where queue = $1 and state = {} and due_at <= {} - cast($2 as bigint)", table,
      kQueueDone, now);

  const auto sum_of = [](QueueState state) {
    return fmt::format("coalesce(sum(case when {} then 1 else 0 end), 0)", StateCondition(state));
  };
  count_ = fmt::format(
      "select {}, {}, {}, {}, {}, coalesce({} - min(case when state = {} then due_at end), 0) "
      "from {} where queue = $1",
      sum_of(QueueState::kReady), sum_of(QueueState::kWaiting), sum_of(QueueState::kRunning),
      sum_of(QueueState::kDone), sum_of(QueueState::kDead), now, kQueueReady, table);
  // `{}`: what else is wanted of the rows.
  list_ = fmt::format(
      "select id, state, payload, priority, created_at, due_at, attempts, attempts_max, owner, "
      "coalesce(unique_key, ''), error from {} where queue = $1 {{}} order by id "
      "limit cast($2 as bigint)",
      table);
  revive_ = fmt::format(
      "update {} set state = {}, attempts = 0, due_at = {} where queue = $1 and id = $2 and state "
      "= "
      "{}",
      table, kQueueReady, now, kQueueDead);
  remove_ = fmt::format("delete from {} where queue = $1 and id = $2 and owner = ''", table);
  find_ = fmt::format("select owner from {} where queue = $1 and id = $2", table);
}

absl::Status DurableQueueCore::MakeTable() {
  const std::string& table = options_.table;
  const auto index = [&](std::string_view suffix) {
    return IndexOn(database_.dialect(), table, suffix);
  };
  // Without `if not exists` on the indexes: if the table is new, so are they.
  return MakeTableUnlessThere(
      database_, table,
      fmt::format(
          "create table {0} (id {1}, queue text not null, payload {2} not null, "
          "priority integer not null, state integer not null, created_at bigint not null, "
          "due_at bigint not null, attempts integer not null default 0, "
          "attempts_max integer not null, token bigint not null default 0, "
          "owner text not null default '', unique_key text, error text not null default '');"
          "create index {3} (queue, priority desc, id) where state = {4};"
          "create index {5} (queue, due_at) where state = {6};"
          "create index {7} (queue, state, due_at) where state >= {8};"
          "create unique index {9} (queue, unique_key) "
          "where state < {8} and unique_key is not null;",
          table, words_.identity, words_.bytes, index("ready"), kQueueReady, index("hidden"),
          kQueueHidden, index("ended"), kQueueDone, index("unique")));
}

absl::StatusOr<Enqueued> DurableQueueCore::Enqueue(Transaction& transaction,
                                                   const QueueEntry& entry) {
  // What is in the past is due at once, whatever it is.
  const int64_t due = absl::ToUnixMillis(std::max(entry.not_before, absl::UnixEpoch()));
  const std::string_view bytes = entry.payload;
  // One that is there may have ended before it is looked for; and the next one may have come.
  for (int i = 0; i < kQueueUniqueTries; ++i) {
    BOBBIN_ASSIGN_OR_RETURN(
        const Rows added,
        transaction.Query(UncheckedSql(enqueue_), options_.name,
                          std::as_bytes(std::span(bytes.data(), bytes.size())), entry.priority, due,
                          std::max(entry.attempts_max, 1), entry.unique_key));
    if (!added.empty()) {
      BOBBIN_ASSIGN_OR_RETURN(const int64_t id, added[0].Get<int64_t>(0));
      return Enqueued{.id = id};
    }
    BOBBIN_ASSIGN_OR_RETURN(const Rows there, transaction.Query(UncheckedSql(find_unique_),
                                                                options_.name, entry.unique_key));
    if (!there.empty()) {
      BOBBIN_ASSIGN_OR_RETURN(const int64_t id, there[0].Get<int64_t>(0));
      return Enqueued{.id = id, .how = Enqueued::How::kWasThere};
    }
  }
  return MakeStatus(
      absl::StatusCode::kAborted,
      fmt::format("enqueue {}: tasks with its unique key come and go", options_.name));
}

absl::StatusOr<QueueCounts> DurableQueueCore::Count() {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(count_), options_.name));
  BOBBIN_ASSIGN_OR_RETURN(const auto row,
                          (rows.Only<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>()));
  return QueueCounts{.ready = std::get<0>(row),
                     .waiting = std::get<1>(row),
                     .running = std::get<2>(row),
                     .done = std::get<3>(row),
                     .dead = std::get<4>(row),
                     .lag = absl::Milliseconds(std::max<int64_t>(std::get<5>(row), 0))};
}

absl::StatusOr<std::vector<QueueTaskInfo>> DurableQueueCore::List(const QueueListOptions& options) {
  const std::string which =
      options.state ? fmt::format("and {}", StateCondition(*options.state)) : std::string();
  const std::string sql = fmt::format(fmt::runtime(list_), which);
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows,
                          database_.Query(UncheckedSql(sql), options_.name, options.count_max));
  BOBBIN_ASSIGN_OR_RETURN(const auto typed,
                          (rows.TryAs<int64_t, int64_t, std::span<const std::byte>, int, int64_t,
                                      int64_t, int, int, std::string, std::string, std::string>()));
  std::vector<QueueTaskInfo> tasks;
  for (auto [id, state, payload, priority, created, due, attempts, attempts_max, owner, unique_key,
             error] : typed) {
    tasks.push_back(
        {.id = id,
         .state = StateOf(state, owner),
         .payload = std::string(reinterpret_cast<const char*>(payload.data()), payload.size()),
         .priority = priority,
         .created = absl::FromUnixMillis(created),
         .due = absl::FromUnixMillis(due),
         .attempts = attempts,
         .attempts_max = attempts_max,
         .owner = std::move(owner),
         .unique_key = std::move(unique_key),
         .error = std::move(error)});
  }
  return tasks;
}

absl::Status DurableQueueCore::WhyNot(std::string_view operation, int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(find_), options_.name, id));
  if (rows.empty()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      fmt::format("{} task {}: there is no such task", operation, id));
  }
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    fmt::format("{} task {}: its state is another one", operation, id));
}

absl::Status DurableQueueCore::Revive(int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(const int64_t revived,
                          database_.Execute(UncheckedSql(revive_), options_.name, id));
  if (revived != 1) return WhyNot("revive", id);
  bells_.RingAll();
  return absl::OkStatus();
}

absl::Status DurableQueueCore::Remove(int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(const int64_t removed,
                          database_.Execute(UncheckedSql(remove_), options_.name, id));
  return removed == 1 ? absl::OkStatus() : WhyNot("remove", id);
}

// --- What runners do.

absl::StatusOr<int64_t> DurableQueueCore::Promote() {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(promote_), options_.name));
  BOBBIN_ASSIGN_OR_RETURN(const auto typed, rows.TryAs<int64_t>());
  int64_t dead = 0;
  for (const auto [state] : typed) dead += state == kQueueDead ? 1 : 0;
  return dead;
}

absl::StatusOr<std::vector<DurableQueueCore::Claimed>> DurableQueueCore::Claim(
    const std::string& owner, size_t count_max, absl::Duration lease) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows,
                          database_.Query(UncheckedSql(claim_), options_.name, count_max, owner,
                                          absl::ToInt64Milliseconds(lease)));
  BOBBIN_ASSIGN_OR_RETURN(
      const auto typed,
      (rows.TryAs<int64_t, int64_t, std::span<const std::byte>, int, int, int, int64_t>()));
  std::vector<Claimed> claimed;
  claimed.reserve(typed.size());
  for (auto [id, token, payload, priority, attempt, attempts_max, created] : typed) {
    claimed.push_back(
        {.key = {.id = id, .token = token},
         .payload = std::string(reinterpret_cast<const char*>(payload.data()), payload.size()),
         .priority = priority,
         .attempt = attempt,
         .attempts_max = attempts_max,
         .created = absl::FromUnixMillis(created)});
  }
  std::sort(claimed.begin(), claimed.end(), [](const Claimed& a, const Claimed& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.key.id < b.key.id;
  });
  return claimed;
}

absl::StatusOr<std::optional<absl::Duration>> DurableQueueCore::NextDue() {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(next_due_), options_.name));
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<int64_t> millis, rows.Only<std::optional<int64_t>>());
  if (!millis) return std::optional<absl::Duration>();
  return std::optional<absl::Duration>(absl::Milliseconds(std::max<int64_t>(*millis, 0)));
}

absl::StatusOr<std::vector<DurableQueueCore::RunKey>> DurableQueueCore::Extend(
    const std::string& owner, std::span<const int64_t> ids, absl::Duration lease) {
  const std::string which = Numbers(ids);
  BOBBIN_RETURN_IF_ERROR(
      database_.Execute(UncheckedSql(extend_), owner, which, absl::ToInt64Milliseconds(lease))
          .status());
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_.Query(UncheckedSql(look_), owner, which));
  BOBBIN_ASSIGN_OR_RETURN(const auto typed, (rows.TryAs<int64_t, int64_t>()));
  std::vector<RunKey> held;
  for (const auto [id, token] : typed) held.push_back({.id = id, .token = token});
  return held;
}

absl::StatusOr<DurableQueueCore::Step> DurableQueueCore::Complete(Statements& statements,
                                                                  const RunKey& key,
                                                                  absl::Duration keep) {
  const std::string& sql = keep > absl::ZeroDuration() ? keep_ : take_;
  BOBBIN_ASSIGN_OR_RETURN(const int64_t changed,
                          statements.Execute(UncheckedSql(sql), key.id, key.token));
  return StepOf(changed);
}

absl::StatusOr<DurableQueueCore::Step> DurableQueueCore::Fail(const RunKey& key,
                                                              const Failure& failure) {
  const int state = failure.then == Failure::Then::kDead ? kQueueDead : kQueueHidden;
  BOBBIN_ASSIGN_OR_RETURN(
      const int64_t changed,
      database_.Execute(UncheckedSql(fail_), key.id, key.token, state,
                        absl::ToInt64Milliseconds(failure.pause), failure.error));
  return StepOf(changed);
}

absl::StatusOr<DurableQueueCore::Step> DurableQueueCore::Release(const RunKey& key) {
  BOBBIN_ASSIGN_OR_RETURN(const int64_t changed,
                          database_.Execute(UncheckedSql(release_), key.id, key.token));
  return StepOf(changed);
}

absl::Status DurableQueueCore::ReleaseOthers(const std::string& owner,
                                             std::span<const int64_t> ids) {
  return database_.Execute(UncheckedSql(release_others_), options_.name, owner, Numbers(ids))
      .status();
}

absl::Status DurableQueueCore::DropDone(absl::Duration keep) {
  return database_.Execute(UncheckedSql(drop_), options_.name, absl::ToInt64Milliseconds(keep))
      .status();
}

}  // namespace bobbin::db::internal
