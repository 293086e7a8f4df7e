// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <bobbin/core/status.h>
#include <bobbin/db/pg_bell.h>
#include <bobbin/db/pg_listener.h>
#include <bobbin/sched/spawn.h>

namespace bobbin::db {

absl::StatusOr<PgBell> PgBell::Start(PgServer server, std::string channel,
                                     absl::AnyInvocable<void()> ring) {
  BOBBIN_ASSIGN_OR_RETURN(PgListener listener,
                          PgListener::Open(std::move(server), {std::move(channel)}));
  return PgBell(
      Spawn({.name = "bell"},
            [listener = std::move(listener), ring = std::move(ring)]() mutable -> absl::Status {
              while (true) {
                BOBBIN_RETURN_IF_ERROR(listener.Next().status());
                ring();
              }
            }));
}

}  // namespace bobbin::db
