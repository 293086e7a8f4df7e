// SPDX-License-Identifier: Apache-2.0
//
// PgBell: calls a function whenever a PostgreSQL channel is notified, and whenever notifications
// may have been missed.
//
// It is for what looks at a table now and then, and would rather be told: OutboxRelay::Ring,
// QueueRunner::Ring. A virtual thread of its own listens, on a connection of its own.
//
//   Called from   threads that may use a PgPool. The function: on the bell's virtual thread.
//   Suspends      Start, until it is connected. The destructor, until the thread has ended.
//   Cancellation  Start: CANCELLED or DEADLINE_EXCEEDED. The destructor ignores it.
//   Errors        Start: as PgListener::Open. Later ones are made up for by connecting again.
//   Lifetime      What the function uses must outlive the bell, and the bell must end before its
//                 runtime.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const auto bell,
//                           bobbin::db::PgBell::Start({.conninfo = conninfo}, "orders",
//                                                     [&] { relay.Ring(); }));

#ifndef BOBBIN_DB_PG_BELL_H_
#define BOBBIN_DB_PG_BELL_H_

#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_server.h>

namespace bobbin::db {

class [[nodiscard]] PgBell {
 public:
  static absl::StatusOr<PgBell> Start(PgServer server, std::string channel,
                                      absl::AnyInvocable<void()> ring);

 private:
  explicit PgBell(VirtualThread listening) : listening_(std::move(listening)) {}

  VirtualThread listening_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_BELL_H_
