// SPDX-License-Identifier: Apache-2.0

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/db/lease_table.h>

#include "db/src/sql_words.h"

namespace bobbin::db {

namespace {

using Layout = LeaseTableOptions::Layout;

// How a layout is written in a dialect. `{}` is what is worked on.
struct Words {
  std::string_view name_type;
  std::string_view time_type;
  std::string_view now;        // The database's clock, of the moment in which it is evaluated.
  std::string_view later;      // `{0}`, and so many milliseconds as the value `{1}` says, later.
  std::string_view in_millis;  // As milliseconds since 1970.
};

constexpr Words kPostgresMillis = {
    .name_type = "text",
    .time_type = "bigint",
    .now = "(extract(epoch from clock_timestamp()) * 1000)::int8",
    .later = "{0} + {1}::int8",
    .in_millis = "{0}",
};
constexpr Words kPostgresTimestamps = {
    .name_type = "varchar(255)",
    .time_type = "timestamp",
    .now = "date_trunc('milliseconds', timezone('utc', clock_timestamp()))",
    .later = "{0} + {1}::int8 * interval '1 millisecond'",
    .in_millis = "(extract(epoch from {0}) * 1000)::int8",
};
// In SQLite `now` is the same throughout a step.
constexpr Words kSqliteMillis = {
    .name_type = "text",
    .time_type = "integer",
    .now = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)",
    .later = "{0} + {1}",
    .in_millis = "{0}",
};
constexpr Words kSqliteTimestamps = {
    .name_type = "text",
    .time_type = "text",
    .now = "strftime('%Y-%m-%d %H:%M:%f', 'now')",
    .later = "strftime('%Y-%m-%d %H:%M:%f', {0}, ({1} / 1000.0) || ' seconds')",
    .in_millis = "cast(round((julianday({0}) - 2440587.5) * 86400000) as integer)",
};

// Names are compared byte by byte, as elsewhere. Sessions are in UTC.
constexpr Words kMySqlMillis = {
    .name_type = "varchar(255) character set utf8mb4 collate utf8mb4_bin",
    .time_type = "bigint",
    .now = "cast(unix_timestamp(sysdate(3)) * 1000 as signed)",
    .later = "{0} + {1}",
    .in_millis = "{0}",
};
constexpr Words kMySqlTimestamps = {
    .name_type = kMySqlMillis.name_type,
    .time_type = "datetime(3)",
    .now = "sysdate(3)",
    .later = "{0} + interval {1} * 1000 microsecond",
    .in_millis = "cast(unix_timestamp({0}) * 1000 as signed)",
};

const Words& WordsFor(Dialect dialect, Layout layout) {
  const bool is_in_millis = layout == Layout::kMillis;
  switch (dialect) {
    case Dialect::kSqlite:
      return is_in_millis ? kSqliteMillis : kSqliteTimestamps;
    case Dialect::kPostgres:
      return is_in_millis ? kPostgresMillis : kPostgresTimestamps;
    case Dialect::kMySql:
      return is_in_millis ? kMySqlMillis : kMySqlTimestamps;
  }
  return kSqliteMillis;
}

std::string Fill(std::string_view words, std::string_view of, std::string_view value = {}) {
  return fmt::format(fmt::runtime(words), of, value);
}

// Makes what is missing. Others may do the same at the same time: who is late finds it done.
absl::Status MakeTable(Database& database, const std::string& table, const Words& words) {
  const std::string look = fmt::format("select token from {} limit 0", table);
  absl::Status status = database.Query(UncheckedSql(look)).status();
  if (status.ok()) return status;
  const std::string create = fmt::format(
      "create table if not exists {} (name {} primary key, lock_until {} not null, "
      "locked_at {} not null, locked_by {}, token bigint not null default 0)",
      table, words.name_type, words.time_type, words.time_type, words.name_type);
  status = database.Execute(UncheckedSql(create)).status();
  if (database.Query(UncheckedSql(look)).ok()) return absl::OkStatus();
  if (status.ok()) {
    const std::string alter =
        fmt::format("alter table {} add column token bigint not null default 0", table);
    status = database.Execute(UncheckedSql(alter)).status();
  }
  if (database.Query(UncheckedSql(look)).ok()) return absl::OkStatus();
  return status;
}

int64_t MillisOf(absl::Duration duration) {
  return absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
}

absl::Status NotHeld(std::string_view verb, const cron::Lease& lease) {
  return MakeStatus(absl::StatusCode::kAborted,
                    fmt::format("{} lease \"{}\": it is not held any more", verb, lease.name));
}

}  // namespace

absl::StatusOr<LeaseTable> LeaseTable::Open(Database& database, LeaseTableOptions options) {
  if (!internal::IsTableName(options.table)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("open leases: \"{}\" is no name of a table", options.table));
  }
  const Words& words = WordsFor(database.dialect(), options.layout);
  BOBBIN_RETURN_IF_ERROR(MakeTable(database, options.table, words));

  LeaseTable table(database);
  const std::string times = fmt::format("{}, {}", Fill(words.in_millis, "locked_at"),
                                        Fill(words.in_millis, "lock_until"));
  // The times are of the moment in which the row is ours, not of that in which the wait for it
  // began: both come from one look at the clock, within the update.
  const std::string period = fmt::format("select clock.now, {} from (select {} as now) as clock",
                                         Fill(words.later, "clock.now", "$2"), words.now);
  table.claim_ = fmt::format(
      "insert into {0} as held (name, locked_at, lock_until, locked_by, token) "
      "select $1, period.since, period.until, $3, 1 "
      "from (select clock.now as since, {3} as until from (select {2} as now) as clock) as period "
      "where true "
      "on conflict (name) do update set (locked_at, lock_until) = ({1}), "
      "locked_by = excluded.locked_by, token = held.token + 1 "
      "where held.lock_until <= {2} "
      "returning {4}, token",
      options.table, period, words.now, Fill(words.later, "clock.now", "$2"), times);
  table.extend_ = fmt::format(
      "update {} set lock_until = {} where name = $1 and locked_by = $3 and lock_until > {} "
      "returning {}, token",
      options.table, Fill(words.later, words.now, "$2"), words.now, times);
  // What is left of at_least is nobody's.
  const std::string end = Fill(words.later, "locked_at", "$2");
  table.release_ = fmt::format(
      "update {0} set lock_until = case when {1} > {2} then {1} else {2} end, locked_by = '' "
      "where name = $1 and locked_by = $3 and lock_until > {2}",
      options.table, end, words.now);
  // A statement that changes rows returns none there: what has become of them is another one.
  if (database.dialect() == Dialect::kMySql) {
    // Each assignment sees what those before it have done: only who has just put his name there
    // goes on.
    table.claim_ = fmt::format(
        "insert into {0} (name, locked_at, lock_until, locked_by, token) "
        "values ($1, {1}, {2}, $3, 1) on duplicate key update "
        "locked_by = if(lock_until <= {1}, $3, locked_by), "
        "token = if(locked_by = $3, token + 1, token), "
        "locked_at = if(locked_by = $3, {1}, locked_at), "
        "lock_until = if(locked_by = $3, {2}, lock_until)",
        options.table, words.now, Fill(words.later, "locked_at", "$2"));
    table.extend_ = fmt::format(
        "update {} set lock_until = {} where name = $1 and locked_by = $3 and lock_until > {}",
        options.table, Fill(words.later, words.now, "$2"), words.now);
    table.held_ = fmt::format("select {}, token from {} where name = $1 and locked_by = $2", times,
                              options.table);
  }
  table.list_ = fmt::format(
      "select name, coalesce(locked_by, ''), {}, token from {} where lock_until > {} order by name",
      times, options.table, words.now);
  return table;
}

absl::StatusOr<Rows> LeaseTable::Take(const std::string& sql, const cron::Lease& lease,
                                      absl::Duration at_most) {
  if (held_.empty()) {
    return database_->Query(UncheckedSql(sql), lease.name, MillisOf(at_most), lease.owner);
  }
  BOBBIN_ASSIGN_OR_RETURN(
      const int64_t changed,
      database_->Execute(UncheckedSql(sql), lease.name, MillisOf(at_most), lease.owner));
  if (changed == 0) return Rows();
  return database_->Query(UncheckedSql(held_), lease.name, lease.owner);
}

absl::StatusOr<std::optional<cron::Lease>> LeaseTable::Claim(const cron::LeaseTerms& terms) {
  BOBBIN_RETURN_IF_ERROR(terms.Check());
  cron::Lease lease = {
      .name = terms.name, .owner = cron::NewLeaseOwner(), .at_least = terms.at_least};
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, Take(claim_, lease, terms.at_most));
  if (rows.empty()) return std::optional<cron::Lease>();
  BOBBIN_ASSIGN_OR_RETURN(const auto row, (rows.Only<int64_t, int64_t, int64_t>()));
  lease.since = absl::FromUnixMillis(std::get<0>(row));
  lease.until = absl::FromUnixMillis(std::get<1>(row));
  lease.token = std::get<2>(row);
  return std::optional<cron::Lease>(std::move(lease));
}

absl::StatusOr<cron::Lease> LeaseTable::Extend(const cron::Lease& lease, absl::Duration at_most) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, Take(extend_, lease, at_most));
  if (rows.empty()) return NotHeld("extend", lease);
  BOBBIN_ASSIGN_OR_RETURN(const auto row, (rows.Only<int64_t, int64_t, int64_t>()));
  cron::Lease extended = lease;
  extended.until = absl::FromUnixMillis(std::get<1>(row));
  return extended;
}

absl::Status LeaseTable::Release(const cron::Lease& lease) {
  BOBBIN_ASSIGN_OR_RETURN(const int64_t released,
                          database_->Execute(UncheckedSql(release_), lease.name,
                                             MillisOf(lease.at_least), lease.owner));
  return released == 1 ? absl::OkStatus() : NotHeld("release", lease);
}

absl::StatusOr<std::vector<cron::Lease>> LeaseTable::List() {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, database_->Query(UncheckedSql(list_)));
  BOBBIN_ASSIGN_OR_RETURN(const auto typed,
                          (rows.TryAs<std::string, std::string, int64_t, int64_t, int64_t>()));
  std::vector<cron::Lease> held;
  for (auto [name, owner, since, until, token] : typed) {
    held.push_back({.name = std::move(name),
                    .owner = std::move(owner),
                    .token = token,
                    .since = absl::FromUnixMillis(since),
                    .until = absl::FromUnixMillis(until)});
  }
  return held;
}

}  // namespace bobbin::db
