// SPDX-License-Identifier: Apache-2.0

#include "db/src/sqlite_status.h"

#include <charconv>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include <fmt/format.h>
#include <sqlite3.h>

#include <bobbin/core/status.h>
#include <bobbin/db/sqlite.h>

namespace bobbin::db {

namespace {
constexpr char kPayloadUrl[] = "bobbin/sqlite";
}  // namespace

namespace internal {

absl::StatusCode CanonicalCodeOf(int extended_code, int error_number) {
  switch (extended_code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_BUSY_SNAPSHOT:
      return absl::StatusCode::kAborted;
    case SQLITE_IOERR_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (extended_code & 0xff) {
    case SQLITE_OK:
      return absl::StatusCode::kOk;
    case SQLITE_CONSTRAINT:
    case SQLITE_LOCKED:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_BUSY:
    case SQLITE_PROTOCOL:
      return absl::StatusCode::kUnavailable;
    case SQLITE_SCHEMA:
    case SQLITE_ABORT:
      return absl::StatusCode::kAborted;
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kCancelled;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_NOLFS:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CANTOPEN:
      return error_number == 0 ? absl::StatusCode::kUnavailable
                               : absl::ErrnoToStatusCode(error_number);
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status SqliteStatus(int extended_code, int error_number, std::string_view operation,
                          std::string_view text) {
  absl::Status status =
      MakeStatus(CanonicalCodeOf(extended_code, error_number),
                 fmt::format("{}: {} (sqlite {})", operation, text, extended_code));
  status.SetPayload(kPayloadUrl, absl::Cord(std::to_string(extended_code)));
  return status;
}

}  // namespace internal

int SqliteCodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return 0;
  const std::string digits(*payload);
  int code = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), code);
  return code;
}

}  // namespace bobbin::db
