// SPDX-License-Identifier: Apache-2.0
//
// Cell: one value of a result as it is kept. Decoder: how it is read as a C++ type.
//
//   Called from   any thread; one at a time.
//   Suspends      never.

#ifndef BOBBIN_DB_INTERNAL_CELL_H_
#define BOBBIN_DB_INTERNAL_CELL_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include <bobbin/db/uuid.h>
#include <bobbin/db/value.h>

namespace bobbin::db::internal {

class RowsBuilder;

// kUnsigned: an integer above the largest int64_t, as its bits.
enum class CellKind : uint8_t { kNull, kInteger, kUnsigned, kReal, kText, kBlob, kArray };

struct Cell {
  CellKind kind = CellKind::kNull;
  CellKind element_kind = CellKind::kNull;  // Of an array.
  uint32_t size = 0;                        // Of a text, a blob or an array's text.
  union {
    int64_t integer = 0;
    double real;
    uint64_t offset;  // Of a text, a blob or an array, in the bytes of its result.
  };
};
static_assert(sizeof(Cell) == 16);

// A cell with what it refers to.
struct CellView {
  CellKind kind = CellKind::kNull;
  CellKind element_kind = CellKind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes;

  static CellView Of(const Cell& cell, std::string_view all_bytes) {
    CellView view;
    view.kind = cell.kind;
    if (cell.kind == CellKind::kInteger || cell.kind == CellKind::kUnsigned) {
      view.integer = cell.integer;
    }
    if (cell.kind == CellKind::kReal) view.real = cell.real;
    view.element_kind = cell.element_kind;
    if (cell.kind >= CellKind::kText) {
      view.bytes = all_bytes.substr(cell.offset, cell.size);
    }
    return view;
  }
};

// Whether a cell can be read as a type.
enum class Fit : uint8_t { kFits, kWrongType, kOutOfRange };

inline Fit FitIf(const CellView& cell, CellKind kind) {
  return cell.kind == kind ? Fit::kFits : Fit::kWrongType;
}

// An array's text is a text, too.
inline Fit FitIfText(const CellView& cell) {
  return cell.kind == CellKind::kArray ? Fit::kFits : FitIf(cell, CellKind::kText);
}

// What a text says, as ISO 8601 and PostgreSQL write it: a space or a T before the time of day, an
// offset or UTC, ` BC`, `infinity`. Nothing, if it says something else.
std::optional<absl::Time> ParseTime(std::string_view text);
std::optional<absl::CivilDay> ParseDay(std::string_view text);

// `text`, as PostgreSQL writes a value of `kind`, as a cell. Blobs are decoded into `storage`.
// False if it is none of that kind.
bool ReadText(CellKind kind, std::string_view text, std::string& storage, CellView& cell);

// The elements of an array's text, one after another.
class ArrayReader {
 public:
  explicit ArrayReader(const CellView& array);
  // Whether there is one more, which `cell` then is until the next call.
  bool Next(CellView& cell);
  // Whether the text was one of an array. REQUIRES: Next has returned false.
  bool is_valid() const { return is_valid_ && rest_.empty(); }

 private:
  bool Fail();
  // The text of the next element, without what quotes it.
  bool TakeElement(bool& is_quoted);

  const CellKind element_kind_;
  std::string_view rest_;
  bool is_first_ = true;
  bool is_valid_ = true;
  std::string element_;
  std::string storage_;
};

// REQUIRES: it is kUnsigned.
inline uint64_t UnsignedOf(const CellView& cell) { return static_cast<uint64_t>(cell.integer); }

inline std::span<const std::byte> BlobOf(const CellView& cell) {
  return std::as_bytes(std::span(cell.bytes));
}

// For each type: its name for messages, whether a cell fits, and the value of one that does.
template <typename T>
struct Decoder;

template <Integer T>
struct Decoder<T> {
  static constexpr std::string_view kName = "an integer";
  static Fit FitOf(const CellView& cell) {
    if (cell.kind == CellKind::kUnsigned) {
      return std::in_range<T>(UnsignedOf(cell)) ? Fit::kFits : Fit::kOutOfRange;
    }
    if (cell.kind != CellKind::kInteger) return Fit::kWrongType;
    return std::in_range<T>(cell.integer) ? Fit::kFits : Fit::kOutOfRange;
  }
  static T Decode(const CellView& cell) { return static_cast<T>(cell.integer); }
};

template <>
struct Decoder<bool> {
  static constexpr std::string_view kName = "a bool";
  static Fit FitOf(const CellView& cell) {
    if (cell.kind == CellKind::kUnsigned) return Fit::kOutOfRange;
    if (cell.kind != CellKind::kInteger) return Fit::kWrongType;
    return cell.integer == 0 || cell.integer == 1 ? Fit::kFits : Fit::kOutOfRange;
  }
  static bool Decode(const CellView& cell) { return cell.integer != 0; }
};

template <>
struct Decoder<double> {
  static constexpr std::string_view kName = "a double";
  static Fit FitOf(const CellView& cell) {
    const bool is_integer = cell.kind == CellKind::kInteger || cell.kind == CellKind::kUnsigned;
    return is_integer ? Fit::kFits : FitIf(cell, CellKind::kReal);
  }
  static double Decode(const CellView& cell) {
    if (cell.kind == CellKind::kUnsigned) return static_cast<double>(UnsignedOf(cell));
    return cell.kind == CellKind::kInteger ? static_cast<double>(cell.integer) : cell.real;
  }
};

template <>
struct Decoder<float> {
  static constexpr std::string_view kName = "a float";
  static Fit FitOf(const CellView& cell) { return Decoder<double>::FitOf(cell); }
  static float Decode(const CellView& cell) {
    return static_cast<float>(Decoder<double>::Decode(cell));
  }
};

template <>
struct Decoder<std::string_view> {
  static constexpr std::string_view kName = "text";
  static Fit FitOf(const CellView& cell) { return FitIfText(cell); }
  static std::string_view Decode(const CellView& cell) { return cell.bytes; }
};

template <>
struct Decoder<std::string> {
  static constexpr std::string_view kName = "text";
  static Fit FitOf(const CellView& cell) { return FitIfText(cell); }
  static std::string Decode(const CellView& cell) { return std::string(cell.bytes); }
};

template <>
struct Decoder<std::span<const std::byte>> {
  static constexpr std::string_view kName = "a blob";
  static Fit FitOf(const CellView& cell) { return FitIf(cell, CellKind::kBlob); }
  static std::span<const std::byte> Decode(const CellView& cell) { return BlobOf(cell); }
};

template <>
struct Decoder<std::vector<std::byte>> {
  static constexpr std::string_view kName = "a blob";
  static Fit FitOf(const CellView& cell) { return FitIf(cell, CellKind::kBlob); }
  static std::vector<std::byte> Decode(const CellView& cell) {
    const std::span<const std::byte> blob = BlobOf(cell);
    return {blob.begin(), blob.end()};
  }
};

// A value that is written as a text, and read by `parse`.
template <typename T, std::optional<T> (*parse)(std::string_view)>
struct ParsedDecoder {
  static Fit FitOf(const CellView& cell) {
    const bool fits = cell.kind == CellKind::kText && parse(cell.bytes).has_value();
    return fits ? Fit::kFits : Fit::kWrongType;
  }
  static T Decode(const CellView& cell) { return parse(cell.bytes).value_or(T()); }
};

template <>
struct Decoder<absl::Time> : ParsedDecoder<absl::Time, ParseTime> {
  static constexpr std::string_view kName = "a time";
};
template <>
struct Decoder<absl::CivilDay> : ParsedDecoder<absl::CivilDay, ParseDay> {
  static constexpr std::string_view kName = "a date";
};
template <>
struct Decoder<Uuid> : ParsedDecoder<Uuid, Uuid::Parse> {
  static constexpr std::string_view kName = "a UUID";
};

template <typename T>
struct Decoder<std::vector<T>> {
  static_assert(!std::is_same_v<T, std::string_view>, "an element is decoded: it needs an owner");
  static constexpr std::string_view kName = "an array";
  static Fit FitOf(const CellView& cell) {
    if (cell.kind != CellKind::kArray) return Fit::kWrongType;
    ArrayReader reader(cell);
    for (CellView element; reader.Next(element);) {
      const Fit fit = Decoder<T>::FitOf(element);
      if (fit != Fit::kFits) return fit;
    }
    return reader.is_valid() ? Fit::kFits : Fit::kWrongType;
  }
  static std::vector<T> Decode(const CellView& cell) {
    std::vector<T> values;
    ArrayReader reader(cell);
    for (CellView element; reader.Next(element);) values.push_back(Decoder<T>::Decode(element));
    return values;
  }
};

template <typename T>
struct Decoder<std::optional<T>> {
  static constexpr std::string_view kName = Decoder<T>::kName;
  static Fit FitOf(const CellView& cell) {
    return cell.kind == CellKind::kNull ? Fit::kFits : Decoder<T>::FitOf(cell);
  }
  static std::optional<T> Decode(const CellView& cell) {
    if (cell.kind == CellKind::kNull) return std::nullopt;
    return Decoder<T>::Decode(cell);
  }
};

template <>
struct Decoder<Value> {
  static constexpr std::string_view kName = "any value";
  static Fit FitOf(const CellView&) { return Fit::kFits; }
  static Value Decode(const CellView& cell) {
    switch (cell.kind) {
      case CellKind::kInteger:
        return cell.integer;
      case CellKind::kUnsigned:  // A Value has no room for it.
        return std::to_string(UnsignedOf(cell));
      case CellKind::kReal:
        return cell.real;
      case CellKind::kText:
      case CellKind::kArray:
        return Decoder<std::string>::Decode(cell);
      case CellKind::kBlob:
        return Decoder<std::vector<std::byte>>::Decode(cell);
      case CellKind::kNull:
        break;
    }
    return nullptr;
  }
};

// A single value is not wrapped in a tuple.
template <typename... Ts>
struct OnlyResult {
  using type = std::tuple<Ts...>;
};
template <typename T>
struct OnlyResult<T> {
  using type = T;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_INTERNAL_CELL_H_
