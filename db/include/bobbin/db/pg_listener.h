// SPDX-License-Identifier: Apache-2.0
//
// PgListener: what other sessions tell by NOTIFY, on a connection of its own.
//
// A connection that is lost is made again, as often as it takes, with growing pauses. What was
// notified meanwhile is lost, and the listener says so: whoever keeps something up to date by
// notifications looks at all of it then. The first thing that Next returns is such an event, too.
//
//   Called from   one thread at a time, such as PgPool may be used on.
//   Suspends      Open, until it is connected; Next, until there is something.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; nothing is lost, and it may be called again.
//   Errors        Open: as PgPool::Open. Next: only those of a cancellation.
//   Order         as the server has it: that in which transactions were committed.
//   Lifetime      one thread at a time; destroying it closes the connection.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::db::PgListener::Open(
//                                              {.conninfo = conninfo}, {"prices"}));
//   while (true) {
//     BOBBIN_ASSIGN_OR_RETURN(const auto event, listener.Next());
//     if (event.kind == bobbin::db::PgEvent::kConnected) ReloadAll();
//     if (event.kind == bobbin::db::PgEvent::kNotified) Reload(event.payload);
//   }

#ifndef BOBBIN_DB_PG_LISTENER_H_
#define BOBBIN_DB_PG_LISTENER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include <bobbin/db/pg_server.h>

namespace bobbin::db {

namespace internal {
class PgListenerCore;
}  // namespace internal

enum class PgEvent : uint8_t {
  kConnected,  // From now on nothing is missed; before, something may have been.
  kNotified,
};

struct PgNotification {
  PgEvent kind = PgEvent::kConnected;
  std::string channel = {};
  std::string payload = {};
  int process = 0;  // The server's, of the session that has told it.
};

class PgListener {
 public:
  static absl::StatusOr<PgListener> Open(PgServer server, std::vector<std::string> channels);
  PgListener(PgListener&&) noexcept;
  PgListener& operator=(PgListener&&) noexcept;
  ~PgListener();

  absl::StatusOr<PgNotification> Next();

 private:
  explicit PgListener(std::unique_ptr<internal::PgListenerCore> core);

  std::unique_ptr<internal::PgListenerCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_LISTENER_H_
