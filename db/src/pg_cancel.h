// SPDX-License-Identifier: Apache-2.0
//
// CancelPg: asks a PostgreSQL server to end the statement that runs on a connection.
//
// It says so on a connection of its own, and closes that one when the process that runs the
// statement has been told. libpq's own function for it blocks.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      until the server has passed it on.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; whether the statement ends is then unknown.
//   Errors        as connect and send.

#ifndef BOBBIN_DB_SRC_PG_CANCEL_H_
#define BOBBIN_DB_SRC_PG_CANCEL_H_

#include <cstdint>

#include "absl/status/status.h"

namespace bobbin::db::internal {

// `socket`, of the connection, tells where the server is.
absl::Status CancelPg(int socket, int32_t process, int32_t key);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_CANCEL_H_
