// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_params.h"

#include <variant>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "db/src/hex.h"
#include "db/src/limits.h"
#include "db/src/text.h"

namespace bobbin::db::internal {

namespace {

constexpr unsigned kByteaType = 17;

// Appends one value; false for NULL.
struct Appender {
  std::string& text;

  bool operator()(std::nullptr_t) const { return false; }
  bool operator()(bool value) const { return Add(value ? "t" : "f"); }
  bool operator()(int64_t value) const { return Add(fmt::format_int(value).c_str()); }
  bool operator()(uint64_t value) const { return Add(fmt::format_int(value).c_str()); }
  bool operator()(double value) const { return Add(RealText(value)); }
  bool operator()(std::string_view value) const { return Add(value); }
  bool operator()(std::span<const std::byte> blob) const {
    text += "\\x";
    for (const std::byte byte : blob) AppendHex(text, byte);
    return true;
  }
  bool operator()(absl::Time time) const { return Add(TimeText(time)); }
  bool operator()(absl::CivilDay day) const { return Add(DayText(day)); }
  bool operator()(const Uuid& uuid) const { return Add(uuid.Text()); }
  bool operator()(const ParamArray& array) const {
    text += '{';
    for (size_t i = 0; i < array.size; ++i) {
      if (i > 0) text += ',';
      const Param element = array.at(array.values, i);
      if (std::holds_alternative<ParamArray>(element.content())) {
        std::visit(*this, element.content());
        continue;
      }
      std::string value;
      if (std::visit(Appender{value}, element.content())) {
        AddQuoted(value);
      } else {
        text += "NULL";
      }
    }
    text += '}';
    return true;
  }

 private:
  bool Add(std::string_view value) const {
    text += value;
    return true;
  }
  void AddQuoted(std::string_view value) const {
    text += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
};

}  // namespace

bool AppendText(std::string& text, const Param::Content& content) {
  return std::visit(Appender{text}, content);
}

absl::StatusOr<PgParams> PgParams::Of(std::span<const Param> params) {
  if (params.size() > kPgValuesMax) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("postgres: {} values, where {} are the most of one statement",
                                  params.size(), kPgValuesMax));
  }
  PgParams result;
  result.places_.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Place& place = result.places_.emplace_back();
    if (const auto* const blob = std::get_if<std::span<const std::byte>>(&params[i].content())) {
      if (blob->size() > kPgValueBytesMax) {
        return MakeStatus(absl::StatusCode::kInvalidArgument,
                          fmt::format("postgres: value {} is too large", i + 1));
      }
      // A null pointer would mean NULL.
      place.blob = blob->empty() ? "" : reinterpret_cast<const char*>(blob->data());
      place.size = static_cast<int>(blob->size());
      place.kind = Place::Kind::kBlob;
      result.has_blob_ = true;
      result.signature_ += 'b';
      continue;
    }
    result.signature_ += 't';
    place.offset = result.texts_.size();
    if (!AppendText(result.texts_, params[i].content())) continue;
    if (result.texts_.find('\0', place.offset) != std::string::npos) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          fmt::format("postgres: value {} is a text with a zero in it, which it cannot hold",
                      i + 1));
    }
    result.texts_ += '\0';
    place.kind = Place::Kind::kText;
  }
  return result;
}

PgParams::Lists PgParams::MakeLists() const {
  Lists lists;
  for (const Place& place : places_) {
    const bool is_blob = place.kind == Place::Kind::kBlob || place.kind == Place::Kind::kOwnBlob;
    const bool is_in_texts =
        place.kind == Place::Kind::kText || place.kind == Place::Kind::kOwnBlob;
    lists.types.push_back(is_blob ? kByteaType : 0);
    lists.values.push_back(is_in_texts ? texts_.data() + place.offset : place.blob);
    lists.lengths.push_back(place.size);
    lists.formats.push_back(is_blob ? 1 : 0);
  }
  return lists;
}

void PgParams::Own() {
  for (Place& place : places_) {
    if (place.kind != Place::Kind::kBlob) continue;
    place.offset = texts_.size();
    texts_.append(place.blob, static_cast<size_t>(place.size));
    place.kind = Place::Kind::kOwnBlob;
  }
}

}  // namespace bobbin::db::internal
