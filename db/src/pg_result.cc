// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_result.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace bobbin::db::internal {

namespace {

std::string FieldOf(const PGresult& result, int code) {
  const char* const text = PQresultErrorField(&result, code);
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

// The numbers of pg_type, which never change.
PgRows::Column PgRows::ColumnOf(Oid type) {
  switch (type) {
    case 16:  // bool
    case 20:  // int8
    case 21:  // int2
    case 23:  // int4
    case 26:  // oid
      return {CellKind::kInteger};
    case 700:  // float4
    case 701:  // float8
      return {CellKind::kReal};
    case 17:  // bytea
      return {CellKind::kBlob};
    case 1000:  // bool[]
    case 1005:  // int2[]
    case 1007:  // int4[]
    case 1016:  // int8[]
    case 1028:  // oid[]
      return {CellKind::kArray, CellKind::kInteger};
    case 1021:  // float4[]
    case 1022:  // float8[]
      return {CellKind::kArray, CellKind::kReal};
    case 1001:  // bytea[]
      return {CellKind::kArray, CellKind::kBlob};
    case 199:   // json[]
    case 1002:  // char[]
    case 1003:  // name[]
    case 1009:  // text[]
    case 1014:  // bpchar[]
    case 1015:  // varchar[]
    case 1115:  // timestamp[]
    case 1182:  // date[]
    case 1185:  // timestamptz[]
    case 1231:  // numeric[]
    case 2951:  // uuid[]
    case 3807:  // jsonb[]
      return {CellKind::kArray, CellKind::kText};
    default:
      return {CellKind::kText};
  }
}

void PgRows::AddColumns(const PGresult& result) {
  for (int i = 0; i < PQnfields(&result); ++i) {
    rows_.AddColumn(PQfname(&result, i));
    columns_.push_back(ColumnOf(PQftype(&result, i)));
  }
  has_columns_ = true;
}

void PgRows::AddValue(const Column& column, std::string_view text) {
  CellView cell;
  // What does not read as what it should be is left as it is.
  if (!ReadText(column.kind, text, storage_, cell)) cell.kind = CellKind::kText;
  switch (cell.kind) {
    case CellKind::kInteger:
      rows_.AddInteger(cell.integer);
      return;
    case CellKind::kReal:
      rows_.AddReal(cell.real);
      return;
    case CellKind::kText:
      rows_.AddBytes(CellKind::kText, text);
      return;
    case CellKind::kBlob:
    case CellKind::kArray:
      rows_.AddBytes(cell.kind, cell.bytes, column.element_kind);
      return;
    case CellKind::kNull:
    case CellKind::kUnsigned:
      rows_.AddNull();
      return;
  }
}

void PgRows::Add(const PGresult& result) {
  if (!has_columns_) AddColumns(result);
  const int rows = PQntuples(&result);
  const auto columns = static_cast<int>(columns_.size());
  rows_.Reserve(static_cast<size_t>(rows) * columns_.size());
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      if (PQgetisnull(&result, row, column) != 0) {
        rows_.AddNull();
        continue;
      }
      const auto size = static_cast<size_t>(PQgetlength(&result, row, column));
      AddValue(columns_[static_cast<size_t>(column)], {PQgetvalue(&result, row, column), size});
    }
  }
  count_ += static_cast<size_t>(rows);
}

int64_t ChangesOf(const PGresult& result) {
  // libpq takes it out of the command's tag, and a SELECT has one, too.
  if (PQresultStatus(&result) == PGRES_TUPLES_OK &&
      std::string_view(PQcmdStatus(const_cast<PGresult*>(&result))).starts_with("SELECT")) {
    return 0;
  }
  const std::string_view digits(PQcmdTuples(const_cast<PGresult*>(&result)));
  int64_t changes = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), changes);
  return changes;
}

PgError ErrorOf(const PGresult& result) {
  PgError error = {
      .sqlstate = FieldOf(result, PG_DIAG_SQLSTATE),
      .message = FieldOf(result, PG_DIAG_MESSAGE_PRIMARY),
      .detail = FieldOf(result, PG_DIAG_MESSAGE_DETAIL),
      .hint = FieldOf(result, PG_DIAG_MESSAGE_HINT),
      .context = FieldOf(result, PG_DIAG_CONTEXT),
      .schema = FieldOf(result, PG_DIAG_SCHEMA_NAME),
      .table = FieldOf(result, PG_DIAG_TABLE_NAME),
      .column = FieldOf(result, PG_DIAG_COLUMN_NAME),
      .constraint = FieldOf(result, PG_DIAG_CONSTRAINT_NAME),
  };
  const std::string position = FieldOf(result, PG_DIAG_STATEMENT_POSITION);
  std::from_chars(position.data(), position.data() + position.size(), error.position);
  // What libpq has found out by itself has no fields.
  if (error.message.empty()) {
    error.message = PQresultErrorMessage(&result);
    error.message.resize(std::min(error.message.find('\n'), error.message.size()));
  }
  return error;
}

}  // namespace bobbin::db::internal
