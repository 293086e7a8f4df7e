// SPDX-License-Identifier: Apache-2.0
//
// RowsBuilder: puts a Rows together, value by value.
//
//   Called from   any thread; one at a time.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_ROWS_BUILDER_H_
#define BOBBIN_DB_SRC_ROWS_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bobbin/db/row.h>

namespace bobbin::db::internal {

class RowsBuilder {
 public:
  // Before the first value.
  void AddColumn(std::string_view name) { rows_.names_.emplace_back(name); }

  // Values, row after row.
  void AddNull() { rows_.cells_.emplace_back(); }
  void AddInteger(int64_t integer) {
    rows_.cells_.emplace_back().kind = CellKind::kInteger;
    rows_.cells_.back().integer = integer;
  }
  // REQUIRES: no int64_t holds it.
  void AddUnsigned(uint64_t number) {
    AddInteger(static_cast<int64_t>(number));
    rows_.cells_.back().kind = CellKind::kUnsigned;
  }
  void AddReal(double real) {
    rows_.cells_.emplace_back().kind = CellKind::kReal;
    rows_.cells_.back().real = real;
  }
  // `kind` is kText, kBlob or, with the kind of its elements, kArray.
  void AddBytes(CellKind kind, std::string_view bytes, CellKind element_kind = CellKind::kNull) {
    Cell& cell = rows_.cells_.emplace_back();
    cell.kind = kind;
    cell.element_kind = element_kind;
    cell.size = static_cast<uint32_t>(bytes.size());
    cell.offset = rows_.bytes_.size();
    rows_.bytes_.append(bytes);
  }

  // That so many values more will come. Called for each of many small results it must not ask for
  // just what they need: the cells would move each time.
  void Reserve(size_t values) {
    const size_t needed = rows_.cells_.size() + values;
    const size_t room = rows_.cells_.capacity();
    if (needed > room) rows_.cells_.reserve(std::max(needed, 2 * room));
  }

  // What the values take up so far.
  size_t bytes() const { return rows_.cells_.size() * sizeof(Cell) + rows_.bytes_.size(); }
  Rows Build() && { return std::move(rows_); }

 private:
  Rows rows_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_ROWS_BUILDER_H_
