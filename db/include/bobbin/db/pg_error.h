// SPDX-License-Identifier: Apache-2.0
//
// PgError: what a PostgreSQL server says about a statement that has failed.
//
// Every status of this module that comes from the server carries it. The code of the status is made
// of the class of `sqlstate`: 23505 is ALREADY_EXISTS, the rest of 23 FAILED_PRECONDITION; 22 and
// 42 are INVALID_ARGUMENT (42P01 and other missing things NOT_FOUND, 42501 PERMISSION_DENIED); 40
// is ABORTED; 08 and 57P UNAVAILABLE; 53 RESOURCE_EXHAUSTED; 28 UNAUTHENTICATED; 25 and 55
// FAILED_PRECONDITION; 0A UNIMPLEMENTED; 57014, without a request of bobbin's own, CANCELLED; XX
// and others INTERNAL.
//
//   Called from   any thread.
//   Suspends      never.
//
// Example:
//   const auto error = bobbin::db::PgErrorOf(status);
//   if (error && error->constraint == "account_owner_key") return TakenName(owner);

#ifndef BOBBIN_DB_PG_ERROR_H_
#define BOBBIN_DB_PG_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace bobbin::db {

struct PgError {
  // Five characters, such as 23505; of the table in PostgreSQL's manual, appendix A.
  std::string sqlstate = {};
  std::string message = {};
  std::string detail = {};
  std::string hint = {};
  std::string context = {};
  // Of what is concerned, where the server says so.
  std::string schema = {};
  std::string table = {};
  std::string column = {};
  std::string constraint = {};
  // The character of the statement that is meant, counted from 1; 0: none.
  int position = 0;
};

// What the server said; nothing, if the status does not come from one.
std::optional<PgError> PgErrorOf(const absl::Status& status);

// Whether the transaction may succeed when it is tried again: it could not be serialized, or was
// chosen to end a deadlock.
bool IsSerializationFailure(const absl::Status& status);

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_ERROR_H_
