// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_error.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::db {

namespace {

constexpr char kPayloadUrl[] = "bobbin/mysql";

bool IsOfClientLibrary(unsigned number) {
  return (number >= 2000 && number < 3000) || (number >= 5000 && number < 6000);
}

// What stands between the last two of these quotes behind `word`.
std::string QuotedBehind(std::string_view text, std::string_view word, char quote) {
  const size_t at = text.find(word);
  if (at == text.npos) return {};
  text.remove_prefix(at + word.size());
  return std::string(text.substr(0, text.find(quote)));
}

// The server has no field for it; the texts below are those of MySQL and MariaDB, in English, which
// a server may be told not to speak.
std::string ConstraintIn(unsigned number, std::string_view message) {
  switch (number) {
    case 1062:    // Duplicate entry '1' for key 'account_owner_key'.
    case 1586: {  // MySQL puts the table's name and a point before it.
      const std::string key = QuotedBehind(message, "for key '", '\'');
      return key.substr(key.find('.') + 1);
    }
    case 1216:
    case 1217:
    case 1451:
    case 1452:
    case 4025:  // CONSTRAINT `positive` failed for `main`.`account`.
      return QuotedBehind(message, "CONSTRAINT `", '`');
    case 3819:  // Check constraint 'positive' is violated.
      return QuotedBehind(message, "Check constraint '", '\'');
    default:
      return {};
  }
}

MySqlError MakeError(unsigned number, const char* sqlstate, const char* message) {
  return {.number = number,
          .sqlstate = sqlstate,
          .message = message,
          .constraint = ConstraintIn(number, message)};
}

}  // namespace

namespace internal {

absl::StatusCode CanonicalCodeOf(const MySqlError& error) {
  switch (error.number) {
    case 1050:  // A table,
    case 1007:  // a database,
    case 1061:  // a key,
    case 1062:  // a row,
    case 1304:  // a procedure
    case 1586:  // is there.
      return absl::StatusCode::kAlreadyExists;
    case 1008:
    case 1049:  // A database,
    case 1054:  // a column,
    case 1091:
    case 1146:  // a table,
    case 1305:  // a procedure is missing.
      return absl::StatusCode::kNotFound;
    case 1020:
    case kMySqlLockWait:
    case kMySqlDeadlock:
      return absl::StatusCode::kAborted;
    case 1044:
    case 1142:
    case 1143:
    case 1227:
    case 1370:
      return absl::StatusCode::kPermissionDenied;
    case 1021:
    case 1038:
    case 1040:
    case 1041:
    case 1114:
    case 1203:
    case 1226:
      return absl::StatusCode::kResourceExhausted;
    case 1053:  // The server ends,
    case 1927:  // or the connection was ended.
    case 4031:
      return absl::StatusCode::kUnavailable;
    case 1153:
    case 1265:
    case 1366:
    case 2034:
      return absl::StatusCode::kInvalidArgument;
    case 1290:
      return absl::StatusCode::kFailedPrecondition;
    case kMySqlNotPreparable:
      return absl::StatusCode::kUnimplemented;
    case kMySqlInterrupted:
    case 1969:  // The time that a statement may take is over.
    case 3024:
      return absl::StatusCode::kCancelled;
    default:
      break;
  }
  if (IsOfClientLibrary(error.number)) return absl::StatusCode::kUnavailable;

  struct Meaning {
    std::string_view sqlstate_class;
    absl::StatusCode code;
  };
  static constexpr Meaning kMeanings[] = {
      {"08", absl::StatusCode::kUnavailable},
      {"0A", absl::StatusCode::kUnimplemented},
      {"21", absl::StatusCode::kInvalidArgument},
      {"22", absl::StatusCode::kInvalidArgument},
      {"23", absl::StatusCode::kFailedPrecondition},
      {"25", absl::StatusCode::kFailedPrecondition},
      {"28", absl::StatusCode::kUnauthenticated},
      {"40", absl::StatusCode::kAborted},
      {"42", absl::StatusCode::kInvalidArgument},
      {"45", absl::StatusCode::kFailedPrecondition},  // Raised by a procedure.
  };
  const auto found = std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](auto& row) {
    return error.sqlstate.starts_with(row.sqlstate_class);
  });
  return found == std::end(kMeanings) ? absl::StatusCode::kInternal : found->code;
}

bool EndsConnection(const MySqlError& error) {
  return IsOfClientLibrary(error.number) || error.sqlstate.starts_with("08") ||
         error.number == 1053 || error.number == 1927 || error.number == 4031;
}

MySqlError ErrorOf(MYSQL& handle) {
  return MakeError(mysql_errno(&handle), mysql_sqlstate(&handle), mysql_error(&handle));
}

MySqlError ErrorOf(MYSQL_STMT& statement) {
  return MakeError(mysql_stmt_errno(&statement), mysql_stmt_sqlstate(&statement),
                   mysql_stmt_error(&statement));
}

absl::Status MySqlStatus(const MySqlError& error, std::string_view operation) {
  absl::Status status =
      MakeStatus(CanonicalCodeOf(error), fmt::format("{}: {} (error {}, sqlstate {})", operation,
                                                     error.message, error.number, error.sqlstate));
  // The number, the state and the message; the rest is in the message.
  status.SetPayload(kPayloadUrl, absl::Cord(fmt::format("{} {} {}", error.number, error.sqlstate,
                                                        error.message)));
  return status;
}

}  // namespace internal

std::optional<MySqlError> MySqlErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  const size_t first = text.find(' ');
  const size_t second = text.find(' ', first + 1);
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + first, number);
  return MakeError(number, text.substr(first + 1, second - first - 1).c_str(),
                   text.substr(second + 1).c_str());
}

bool IsMySqlConflict(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAborted && MySqlErrorOf(status).has_value();
}

}  // namespace bobbin::db
