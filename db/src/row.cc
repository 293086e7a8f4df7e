// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include <fmt/format.h>

#include <bobbin/db/row.h>

namespace bobbin::db {

namespace {

std::string_view NameOf(internal::CellKind kind) {
  switch (kind) {
    case internal::CellKind::kNull:
      return "NULL";
    case internal::CellKind::kInteger:
    case internal::CellKind::kUnsigned:
      return "an integer";
    case internal::CellKind::kReal:
      return "a real number";
    case internal::CellKind::kText:
      return "text";
    case internal::CellKind::kBlob:
      return "a blob";
    case internal::CellKind::kArray:
      return "an array";
  }
  return "unknown";
}

}  // namespace

std::string_view Rows::column_name(size_t column) const {
  BOBBIN_CHECK(column < names_.size(), "no such column");
  return names_[column];
}

absl::StatusOr<size_t> Rows::ColumnIndex(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) {
    return MakeStatus(absl::StatusCode::kNotFound, fmt::format("read row: no column \"{}\"", name));
  }
  if (std::find(found + 1, names_.end(), name) != names_.end()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("read row: two columns are called \"{}\"", name));
  }
  return static_cast<size_t>(found - names_.begin());
}

absl::Status Rows::CheckOnly() const {
  if (size() == 1) return absl::OkStatus();
  if (empty()) return MakeStatus(absl::StatusCode::kNotFound, "read row: there is none");
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    fmt::format("read row: there are {} where one was asked for", size()));
}

absl::Status Rows::CheckColumnCount(size_t wanted) const {
  // A default result has no columns, and no rows that would lack them.
  if (wanted == column_count()) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      fmt::format("read row: it has {} columns, but {} were asked for", column_count(), wanted));
}

absl::Status Rows::Mismatch(size_t row, size_t column, internal::Fit fit,
                            std::string_view wanted) const {
  const internal::CellView cell = Cell(row, column);
  // Rows and columns are counted from 1, as people do.
  const std::string place =
      fmt::format("read row {} column {} \"{}\"", row + 1, column + 1, names_[column]);
  if (fit == internal::Fit::kOutOfRange) {
    const std::string number = cell.kind == internal::CellKind::kUnsigned
                                   ? std::to_string(internal::UnsignedOf(cell))
                                   : std::to_string(cell.integer);
    return MakeStatus(
        absl::StatusCode::kOutOfRange,
        fmt::format("{}: {} does not fit the type that was asked for", place, number));
  }
  if (cell.kind == internal::CellKind::kNull) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      fmt::format("{}: it is NULL, but {} was asked for (std::optional takes NULL)",
                                  place, wanted));
  }
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      fmt::format("{}: it is {}, but {} was asked for", place, NameOf(cell.kind), wanted));
}

}  // namespace bobbin::db
