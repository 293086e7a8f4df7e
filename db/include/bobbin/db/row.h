// SPDX-License-Identifier: Apache-2.0
//
// Rows: the result of a query, all of it, owned. Row: one of them. As: their columns as C++ types.
//
//   a column of      is read as
//   integer          int64_t and the other integer types, if it fits; double; bool, if it is 0 or 1
//   real             double, float
//   text             std::string; std::string_view, borrowed from the Rows
//   a text that is   absl::Time; absl::CivilDay; Uuid
//   blob             std::vector<std::byte>; std::span<const std::byte>, borrowed from the Rows
//   array            std::vector of any of these that is not borrowed; std::string
//   NULL             std::optional of any of these
//   any              Value
//
// Nothing else is converted: text that looks like a number is text. Where a query's own text
// guarantees the types (a primary key, count(*), a NOT NULL column of a STRICT table), use As: a
// mismatch is then a bug, and aborts with the place. Where stored data decides, use TryAs or
// Row::Get, which return it as a status.
//
//   Called from   any thread; one at a time.
//   Suspends      never.
//   Errors        TryAs, Only, Get: FAILED_PRECONDITION for a value of another type or a NULL,
//                 OUT_OF_RANGE for a number that does not fit, INVALID_ARGUMENT for a wrong number
//                 of columns.
//   Lifetime      Row, As, and the views in them, end with the Rows.
//   Cost          16 bytes a value; texts and blobs lie behind each other in one block.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Rows rows, db.Query("select id, owner from account"));
//   for (auto [id, owner] : rows.As<int64_t, std::string_view>()) Print(id, owner);

#ifndef BOBBIN_DB_ROW_H_
#define BOBBIN_DB_ROW_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/db/internal/cell.h>
#include <bobbin/db/value.h>

namespace bobbin::db {

class Rows;

// One row of a Rows.
class Row {
 public:
  size_t size() const;
  // REQUIRES: column < size(); so everywhere below.
  bool IsNull(size_t column) const;
  // The value as a T; see the table above.
  template <typename T>
  absl::StatusOr<T> Get(size_t column) const;

 private:
  friend class Rows;
  template <typename... Ts>
  friend class TypedRows;
  Row(const Rows& rows, size_t index) : rows_(&rows), index_(index) {}

  // Why cell `column` does not fit, or OK.
  template <typename T>
  absl::Status Check(size_t column) const;
  internal::CellView Cell(size_t column) const;

  const Rows* rows_;
  size_t index_;
};

// The rows as tuples of `Ts`, which have been checked to fit.
template <typename... Ts>
class TypedRows {
 public:
  class Iterator {
   public:
    using value_type = std::tuple<Ts...>;
    using difference_type = ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    Iterator() = default;
    value_type operator*() const { return Read(std::index_sequence_for<Ts...>()); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class TypedRows;
    Iterator(const Rows& rows, size_t index) : rows_(&rows), index_(index) {}
    template <size_t... kColumns>
    value_type Read(std::index_sequence<kColumns...>) const;

    const Rows* rows_ = nullptr;
    size_t index_ = 0;
  };

  Iterator begin() const { return Iterator(*rows_, 0); }
  Iterator end() const { return Iterator(*rows_, size()); }
  size_t size() const;
  bool empty() const { return size() == 0; }
  // REQUIRES: index < size().
  std::tuple<Ts...> operator[](size_t index) const;

 private:
  friend class Rows;
  explicit TypedRows(const Rows& rows) : rows_(&rows) {}
  static absl::Status Check(const Rows& rows);
  template <size_t... kColumns>
  static absl::Status CheckRow(const Row& row, std::index_sequence<kColumns...>);

  const Rows* rows_;
};

class Rows {
 public:
  // Without rows and columns.
  Rows() = default;

  size_t size() const { return names_.empty() ? 0 : cells_.size() / names_.size(); }
  bool empty() const { return cells_.empty(); }
  size_t column_count() const { return names_.size(); }
  // REQUIRES: column < column_count().
  std::string_view column_name(size_t column) const;
  // NOT_FOUND if no column, INVALID_ARGUMENT if more than one has that name.
  absl::StatusOr<size_t> ColumnIndex(std::string_view name) const;
  // REQUIRES: index < size().
  Row operator[](size_t index) const {
    BOBBIN_CHECK(index < size(), "no such row");
    return Row(*this, index);
  }

  // All rows as tuples; aborts if a value does not fit. The second form returns that instead.
  template <typename... Ts>
  TypedRows<Ts...> As() const& {
    const absl::Status fits = TypedRows<Ts...>::Check(*this);
    BOBBIN_CHECK(fits.ok(), MessageOf(fits));
    return TypedRows<Ts...>(*this);
  }
  template <typename... Ts>
  absl::StatusOr<TypedRows<Ts...>> TryAs() const& {
    BOBBIN_RETURN_IF_ERROR((TypedRows<Ts...>::Check(*this)));
    return TypedRows<Ts...>(*this);
  }
  template <typename... Ts>
  TypedRows<Ts...> As() const&& = delete;
  template <typename... Ts>
  absl::StatusOr<TypedRows<Ts...>> TryAs() const&& = delete;

  // The one value, or the one tuple, of a result of one row. NOT_FOUND without rows,
  // FAILED_PRECONDITION with more than one.
  template <typename... Ts>
  auto Only() const {
    using Result = typename internal::OnlyResult<Ts...>::type;
    return [this]() -> absl::StatusOr<Result> {
      BOBBIN_RETURN_IF_ERROR(CheckOnly());
      BOBBIN_RETURN_IF_ERROR((TypedRows<Ts...>::Check(*this)));
      if constexpr (sizeof...(Ts) == 1) {
        return std::get<0>(TypedRows<Ts...>(*this)[0]);
      } else {
        return TypedRows<Ts...>(*this)[0];
      }
    }();
  }

 private:
  friend class Row;
  friend class internal::RowsBuilder;
  template <typename... Ts>
  friend class TypedRows;

  absl::Status CheckOnly() const;
  absl::Status CheckColumnCount(size_t wanted) const;
  absl::Status Mismatch(size_t row, size_t column, internal::Fit fit,
                        std::string_view wanted) const;
  internal::CellView Cell(size_t row, size_t column) const {
    return internal::CellView::Of(cells_[row * names_.size() + column], bytes_);
  }

  std::vector<std::string> names_;
  std::vector<internal::Cell> cells_;  // Row after row.
  std::string bytes_;                  // Of all texts and blobs.
};

inline size_t Row::size() const { return rows_->column_count(); }

inline internal::CellView Row::Cell(size_t column) const {
  BOBBIN_CHECK(column < size(), "no such column");
  return rows_->Cell(index_, column);
}

inline bool Row::IsNull(size_t column) const {
  return Cell(column).kind == internal::CellKind::kNull;
}

template <typename T>
absl::Status Row::Check(size_t column) const {
  const internal::Fit fit = internal::Decoder<T>::FitOf(Cell(column));
  if (fit == internal::Fit::kFits) return absl::OkStatus();
  return rows_->Mismatch(index_, column, fit, internal::Decoder<T>::kName);
}

template <typename T>
absl::StatusOr<T> Row::Get(size_t column) const {
  BOBBIN_RETURN_IF_ERROR(Check<T>(column));
  return internal::Decoder<T>::Decode(Cell(column));
}

template <typename... Ts>
template <size_t... kColumns>
std::tuple<Ts...> TypedRows<Ts...>::Iterator::Read(std::index_sequence<kColumns...>) const {
  return value_type(internal::Decoder<Ts>::Decode(rows_->Cell(index_, kColumns))...);
}

template <typename... Ts>
size_t TypedRows<Ts...>::size() const {
  return rows_->size();
}

template <typename... Ts>
std::tuple<Ts...> TypedRows<Ts...>::operator[](size_t index) const {
  BOBBIN_CHECK(index < size(), "no such row");
  return *Iterator(*rows_, index);
}

template <typename... Ts>
template <size_t... kColumns>
absl::Status TypedRows<Ts...>::CheckRow(const Row& row, std::index_sequence<kColumns...>) {
  absl::Status status;
  // Stops at the first that does not fit.
  static_cast<void>(((status = row.Check<Ts>(kColumns), status.ok()) && ...));
  return status;
}

template <typename... Ts>
absl::Status TypedRows<Ts...>::Check(const Rows& rows) {
  BOBBIN_RETURN_IF_ERROR(rows.CheckColumnCount(sizeof...(Ts)));
  for (size_t i = 0; i < rows.size(); ++i) {
    BOBBIN_RETURN_IF_ERROR(CheckRow(rows[i], std::index_sequence_for<Ts...>()));
  }
  return absl::OkStatus();
}

}  // namespace bobbin::db

#endif  // BOBBIN_DB_ROW_H_
