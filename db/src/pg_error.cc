// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_error.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::db {

namespace {

constexpr char kPayloadUrl[] = "bobbin/postgres";

// A payload is the fields that are there, each as a letter, its text and a zero.
constexpr std::pair<char, std::string PgError::*> kFields[] = {
    {'C', &PgError::sqlstate}, {'M', &PgError::message}, {'D', &PgError::detail},
    {'H', &PgError::hint},     {'W', &PgError::context}, {'s', &PgError::schema},
    {'t', &PgError::table},    {'c', &PgError::column},  {'n', &PgError::constraint},
};
constexpr char kPosition = 'P';

void AppendField(std::string& payload, char letter, std::string_view text) {
  payload += letter;
  payload += text;
  payload += '\0';
}

std::string PayloadOf(const PgError& error) {
  std::string payload;
  for (const auto& [letter, field] : kFields) {
    if (!(error.*field).empty()) AppendField(payload, letter, error.*field);
  }
  if (error.position != 0) AppendField(payload, kPosition, std::to_string(error.position));
  return payload;
}

}  // namespace

namespace internal {

absl::StatusCode CanonicalCodeOf(std::string_view sqlstate) {
  struct Meaning {
    std::string_view prefix;
    absl::StatusCode code;
  };
  // The first that matches.
  static constexpr Meaning kMeanings[] = {
      {"", absl::StatusCode::kUnavailable},  // The connection was lost; see below.
      {"23505", absl::StatusCode::kAlreadyExists},
      {"23", absl::StatusCode::kFailedPrecondition},
      {"22", absl::StatusCode::kInvalidArgument},
      {"42501", absl::StatusCode::kPermissionDenied},
      {"42P01", absl::StatusCode::kNotFound},
      {"42703", absl::StatusCode::kNotFound},
      {"42704", absl::StatusCode::kNotFound},
      {"42883", absl::StatusCode::kNotFound},
      {"42P07", absl::StatusCode::kAlreadyExists},
      {"42710", absl::StatusCode::kAlreadyExists},
      {"42", absl::StatusCode::kInvalidArgument},
      {"3D", absl::StatusCode::kNotFound},
      {"40", absl::StatusCode::kAborted},
      {"08P01", absl::StatusCode::kInvalidArgument},  // Too many values, or too few.
      {"08", absl::StatusCode::kUnavailable},
      {"57014", absl::StatusCode::kCancelled},
      {"57P", absl::StatusCode::kUnavailable},
      {"53", absl::StatusCode::kResourceExhausted},
      {"54", absl::StatusCode::kInvalidArgument},
      {"28", absl::StatusCode::kUnauthenticated},
      {"25", absl::StatusCode::kFailedPrecondition},
      {"55", absl::StatusCode::kFailedPrecondition},
      {"0A", absl::StatusCode::kUnimplemented},
      {"P0", absl::StatusCode::kFailedPrecondition},  // Raised by a function.
  };
  if (sqlstate.empty()) return kMeanings[0].code;
  const auto found = std::find_if(std::begin(kMeanings) + 1, std::end(kMeanings),
                                  [&](auto& row) { return sqlstate.starts_with(row.prefix); });
  return found == std::end(kMeanings) ? absl::StatusCode::kInternal : found->code;
}

absl::Status PgStatus(const PgError& error, std::string_view operation) {
  std::string text = fmt::format("{}: {}", operation, error.message);
  if (!error.sqlstate.empty()) text += fmt::format(" (sqlstate {})", error.sqlstate);
  absl::Status status = MakeStatus(CanonicalCodeOf(error.sqlstate), text);
  status.SetPayload(kPayloadUrl, absl::Cord(PayloadOf(error)));
  return status;
}

}  // namespace internal

std::optional<PgError> PgErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  PgError error;
  for (std::string_view rest = text; !rest.empty();) {
    const char letter = rest.front();
    const size_t end = rest.find('\0');
    const std::string_view value = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    for (const auto& [field_letter, field] : kFields) {
      if (field_letter == letter) error.*field = value;
    }
    if (letter == kPosition) error.position = std::stoi(std::string(value));
  }
  return error;
}

bool IsSerializationFailure(const absl::Status& status) {
  const auto error = PgErrorOf(status);
  return error.has_value() && (error->sqlstate == "40001" || error->sqlstate == "40P01");
}

}  // namespace bobbin::db
