// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_params.h"

#include <cmath>
#include <string_view>

#include "absl/time/time.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::db::internal {

namespace {

constexpr int64_t kYearMax = 9999;

template <typename Held, typename T>
T& Hold(Held& held, T value) {
  return held.template emplace<T>(std::move(value));
}

void BindBytes(MYSQL_BIND& bind, enum_field_types type, const void* bytes, size_t size) {
  bind.buffer_type = type;
  // A null pointer would mean that nothing is bound.
  bind.buffer = const_cast<void*>(size == 0 ? "" : bytes);
  bind.buffer_length = size;
  bind.length_value = size;
}

// Only what is there in every month of every year: the server looks at the rest.
MYSQL_TIME DayOf(absl::CivilDay day) {
  MYSQL_TIME time = {};
  time.year = static_cast<unsigned>(day.year());
  time.month = static_cast<unsigned>(day.month());
  time.day = static_cast<unsigned>(day.day());
  time.time_type = MYSQL_TIMESTAMP_DATE;
  return time;
}

MYSQL_TIME TimeOf(const absl::TimeZone::CivilInfo& at) {
  MYSQL_TIME time = DayOf(absl::CivilDay(at.cs));
  time.hour = static_cast<unsigned>(at.cs.hour());
  time.minute = static_cast<unsigned>(at.cs.minute());
  time.second = static_cast<unsigned>(at.cs.second());
  time.second_part = static_cast<unsigned long>(absl::ToInt64Microseconds(at.subsecond));
  time.time_type = MYSQL_TIMESTAMP_DATETIME;
  return time;
}

bool IsYear(int64_t year) { return year >= 0 && year <= kYearMax; }

// How a value goes; returns why it cannot.
template <typename Held>
struct Binder {
  Held& held;
  MYSQL_BIND& bind;

  std::string_view operator()(std::nullptr_t) const {
    bind.buffer_type = MYSQL_TYPE_NULL;
    return {};
  }
  std::string_view operator()(bool value) const {
    bind.buffer_type = MYSQL_TYPE_TINY;
    bind.buffer = &Hold(held, static_cast<signed char>(value ? 1 : 0));
    return {};
  }
  std::string_view operator()(int64_t value) const {
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &Hold(held, static_cast<long long>(value));
    return {};
  }
  std::string_view operator()(uint64_t value) const {
    bind.is_unsigned = 1;
    return (*this)(static_cast<int64_t>(value));
  }
  std::string_view operator()(double value) const {
    if (!std::isfinite(value)) return "is no number that it could hold";
    bind.buffer_type = MYSQL_TYPE_DOUBLE;
    bind.buffer = &Hold(held, value);
    return {};
  }
  std::string_view operator()(std::string_view text) const {
    BindBytes(bind, MYSQL_TYPE_STRING, text.data(), text.size());
    return {};
  }
  std::string_view operator()(std::span<const std::byte> blob) const {
    BindBytes(bind, MYSQL_TYPE_BLOB, blob.data(), blob.size());
    return {};
  }
  std::string_view operator()(absl::Time time) const {
    const auto at = absl::UTCTimeZone().At(time);
    if (!IsYear(at.cs.year())) return "is a time beyond those that it can hold";
    bind.buffer_type = MYSQL_TYPE_DATETIME;
    bind.buffer = &Hold(held, TimeOf(at));
    return {};
  }
  std::string_view operator()(absl::CivilDay day) const {
    if (!IsYear(day.year())) return "is a date beyond those that it can hold";
    bind.buffer_type = MYSQL_TYPE_DATE;
    bind.buffer = &Hold(held, DayOf(day));
    return {};
  }
  std::string_view operator()(const Uuid& uuid) const {
    return (*this)(std::string_view(Hold(held, uuid.Text())));
  }
  std::string_view operator()(const ParamArray&) const { return "is an array, which it has not"; }
};

}  // namespace

std::string_view MySqlParams::BindOne(const Param::Content& content, Held& held, MYSQL_BIND& bind) {
  return std::visit(Binder<Held>{held, bind}, content);
}

absl::Status MySqlParams::Bind(std::span<const Param> params, std::span<const size_t> places) {
  held_.resize(places.size());
  binds_.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    binds_[i] = {};
    const std::string_view why = BindOne(params[places[i]].content(), held_[i], binds_[i]);
    if (!why.empty()) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        fmt::format("mysql: value {} {}", places[i] + 1, why));
    }
  }
  return absl::OkStatus();
}

}  // namespace bobbin::db::internal
