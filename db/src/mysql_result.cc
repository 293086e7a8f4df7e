// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_result.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <bobbin/core/status.h>

#include "db/src/mysql_error.h"
#include "db/src/rows_builder.h"

namespace bobbin::db::internal {

namespace {

// The character set of what is none: bytes.
constexpr unsigned kBinaryCharset = 63;

// What a value is read as.
enum class Reading : uint8_t { kInteger, kUnsigned, kReal, kBits, kText, kBlob };

Reading ReadingOf(const MYSQL_FIELD& field) {
  const bool is_bytes = field.charsetnr == kBinaryCharset;
  switch (field.type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
      return (field.flags & UNSIGNED_FLAG) != 0 ? Reading::kUnsigned : Reading::kInteger;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
      return Reading::kReal;
    case MYSQL_TYPE_BIT:
      return Reading::kBits;
    case MYSQL_TYPE_GEOMETRY:
      return Reading::kBlob;
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_VAR_STRING:
    case MYSQL_TYPE_VARCHAR:
      return is_bytes ? Reading::kBlob : Reading::kText;
    default:
      return Reading::kText;
  }
}

void AddUnsigned(RowsBuilder& rows, uint64_t number) {
  if (std::in_range<int64_t>(number)) return rows.AddInteger(static_cast<int64_t>(number));
  rows.AddUnsigned(number);
}

// The highest bits come first.
uint64_t BitsOf(std::string_view bytes) {
  uint64_t bits = 0;
  for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
  return bits;
}

void AddBytes(RowsBuilder& rows, Reading reading, std::string_view bytes) {
  if (reading == Reading::kBits) return AddUnsigned(rows, BitsOf(bytes));
  rows.AddBytes(reading == Reading::kBlob ? CellKind::kBlob : CellKind::kText, bytes);
}

// A column of a prepared statement's result, and where libmariadb puts its values.
struct Column {
  Reading reading = Reading::kText;
  int64_t integer = 0;
  double real = 0;
  std::string bytes;
  unsigned long size = 0;
  my_bool is_null = 0;
};

void BindColumn(const MYSQL_FIELD& field, Column& column, MYSQL_BIND& bind) {
  column.reading = ReadingOf(field);
  bind.is_null = &column.is_null;
  switch (column.reading) {
    case Reading::kInteger:
    case Reading::kUnsigned:
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.is_unsigned = column.reading == Reading::kUnsigned ? 1 : 0;
      bind.buffer = &column.integer;
      return;
    case Reading::kReal:
      bind.buffer_type = MYSQL_TYPE_DOUBLE;
      bind.buffer = &column.real;
      return;
    case Reading::kBits:
    case Reading::kText:
    case Reading::kBlob:
      break;
  }
  // Times and the like are no longer than this when they are written out.
  constexpr unsigned long kWrittenMax = 64;
  column.bytes.resize(std::max(field.max_length, kWrittenMax));
  bind.buffer_type = column.reading == Reading::kText ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
  bind.buffer = column.bytes.data();
  bind.buffer_length = column.bytes.size();
  bind.length = &column.size;
}

void AddValue(RowsBuilder& rows, const Column& column) {
  if (column.is_null != 0) return rows.AddNull();
  switch (column.reading) {
    case Reading::kInteger:
      return rows.AddInteger(column.integer);
    case Reading::kUnsigned:
      return AddUnsigned(rows, static_cast<uint64_t>(column.integer));
    case Reading::kReal:
      return rows.AddReal(column.real);
    case Reading::kBits:
    case Reading::kText:
    case Reading::kBlob:
      return AddBytes(rows, column.reading, std::string_view(column.bytes).substr(0, column.size));
  }
}

void AddText(RowsBuilder& rows, Reading reading, std::string_view text) {
  const auto number = [&]<typename T>(T) {
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  switch (reading) {
    case Reading::kInteger:
      return rows.AddInteger(number(int64_t{}));
    case Reading::kUnsigned:
      return AddUnsigned(rows, number(uint64_t{}));
    case Reading::kReal:
      return rows.AddReal(number(double{}));
    case Reading::kBits:
    case Reading::kText:
    case Reading::kBlob:
      return AddBytes(rows, reading, text);
  }
}

}  // namespace

absl::StatusOr<Rows> RowsOf(MYSQL_STMT& statement) {
  const size_t count = mysql_stmt_field_count(&statement);
  const MYSQL_FIELD* const fields = mariadb_stmt_fetch_fields(&statement);
  RowsBuilder rows;
  std::vector<Column> columns(count);
  std::vector<MYSQL_BIND> binds(count);
  for (size_t i = 0; i < count; ++i) {
    // Its length is not always kept.
    rows.AddColumn(fields[i].name);
    binds[i] = {};
    BindColumn(fields[i], columns[i], binds[i]);
  }
  if (mysql_stmt_bind_result(&statement, binds.data()) != 0) {
    return MySqlStatus(ErrorOf(statement), "mysql result");
  }
  rows.Reserve(count * mysql_stmt_num_rows(&statement));
  while (true) {
    const int fetched = mysql_stmt_fetch(&statement);
    if (fetched == MYSQL_NO_DATA) return std::move(rows).Build();
    if (fetched != 0) return MySqlStatus(ErrorOf(statement), "mysql result");
    for (const Column& column : columns) AddValue(rows, column);
  }
}

Rows RowsOf(MYSQL_RES& result) {
  const size_t count = mysql_num_fields(&result);
  const MYSQL_FIELD* const fields = mysql_fetch_fields(&result);
  RowsBuilder rows;
  std::vector<Reading> readings;
  for (size_t i = 0; i < count; ++i) {
    rows.AddColumn({fields[i].name, fields[i].name_length});
    readings.push_back(ReadingOf(fields[i]));
  }
  rows.Reserve(count * mysql_num_rows(&result));
  while (const MYSQL_ROW row = mysql_fetch_row(&result)) {
    const unsigned long* const sizes = mysql_fetch_lengths(&result);
    for (size_t i = 0; i < count; ++i) {
      if (row[i] == nullptr) {
        rows.AddNull();
      } else {
        AddText(rows, readings[i], {row[i], sizes[i]});
      }
    }
  }
  return std::move(rows).Build();
}

}  // namespace bobbin::db::internal
