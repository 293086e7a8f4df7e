// SPDX-License-Identifier: Apache-2.0

#include "db/src/sql_words.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bobbin/core/status.h>

namespace bobbin::db::internal {

namespace {

constexpr SqlWords kPostgresWords = {
    .identity = "bigint generated always as identity primary key",
    .bytes = "bytea",
    .now = "cast(extract(epoch from statement_timestamp()) * 1000 as bigint)",
    .skip_locked = "for update of m skip locked",
    .numbers =
        "select cast(value as bigint) from json_array_elements_text(cast({} as json)) as value",
};

// A statement that writes has the whole file. Numbers are not given twice, also of deleted rows.
constexpr SqlWords kSqliteWords = {
    .identity = "integer primary key autoincrement",
    .bytes = "blob",
    .now = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)",
    .skip_locked = "",
    .numbers = "select value from json_each({})",
};

bool IsNamePart(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

absl::StatusOr<const SqlWords*> SqlWordsFor(Dialect dialect, std::string_view operation) {
  if (dialect == Dialect::kPostgres) return &kPostgresWords;
  if (dialect == Dialect::kSqlite) return &kSqliteWords;
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    fmt::format("{}: not on this kind of database", operation));
}

std::string Numbers(std::span<const int64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

bool IsTableName(std::string_view name) {
  const size_t point = name.find('.');
  if (point == name.npos) return IsNamePart(name);
  return IsNamePart(name.substr(0, point)) && IsNamePart(name.substr(point + 1));
}

bool IsPlainName(std::string_view name) { return IsNamePart(name); }

std::string IndexOn(Dialect dialect, std::string_view table, std::string_view suffix) {
  const size_t point = table.find('.');
  const std::string_view plain = point == table.npos ? table : table.substr(point + 1);
  if (dialect == Dialect::kSqlite) return fmt::format("{}_{} on {}", table, suffix, plain);
  return fmt::format("{}_{} on {}", plain, suffix, table);
}

absl::Status MakeTableUnlessThere(Database& database, std::string_view table,
                                  std::string_view script) {
  const std::string look = fmt::format("select id from {} limit 0", table);
  const auto is_there = [&] { return database.Query(UncheckedSql(look)).ok(); };
  if (is_there()) return absl::OkStatus();
  absl::Status made = database.ExecuteScript(UncheckedSql(script));
  return made.ok() || is_there() ? absl::OkStatus() : made;
}

}  // namespace bobbin::db::internal
