// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/status.h>
#include <bobbin/db/pg_listener.h>
#include <bobbin/sched/sleep.h>

#include "db/src/limits.h"
#include "db/src/pg_connection.h"

namespace bobbin::db {

namespace internal {

class PgListenerCore {
 public:
  PgListenerCore(PgServer server, std::vector<std::string> channels)
      : server_(std::move(server)), channels_(std::move(channels)) {}

  absl::Status Connect() {
    BOBBIN_ASSIGN_OR_RETURN(connection_, PgConnection::Open(server_));
    absl::Status status = connection_->Listen(channels_);
    if (!status.ok()) connection_.reset();
    is_told_ = false;
    return status;
  }

  absl::StatusOr<PgNotification> Next() {
    auto pause = kPgReconnectPauseMin;
    while (true) {
      BOBBIN_RETURN_IF_ERROR(CheckStop());
      if (connection_ == nullptr && !Connect().ok()) {
        BOBBIN_RETURN_IF_ERROR(SleepFor(pause));
        pause = std::min(pause * 2, kPgReconnectPauseMax);
        continue;
      }
      if (!std::exchange(is_told_, true)) return PgNotification{};
      absl::StatusOr<PgNotification> notification = connection_->AwaitNotification();
      if (notification.ok()) return notification;
      BOBBIN_RETURN_IF_ERROR(CheckStop());
      connection_.reset();
    }
  }

 private:
  const PgServer server_;
  const std::vector<std::string> channels_;
  std::unique_ptr<PgConnection> connection_;  // Null while there is none.
  bool is_told_ = false;                      // That there is a new one.
};

}  // namespace internal

PgListener::PgListener(std::unique_ptr<internal::PgListenerCore> core) : core_(std::move(core)) {}
PgListener::PgListener(PgListener&&) noexcept = default;
PgListener& PgListener::operator=(PgListener&&) noexcept = default;
PgListener::~PgListener() = default;

absl::StatusOr<PgListener> PgListener::Open(PgServer server, std::vector<std::string> channels) {
  auto core = std::make_unique<internal::PgListenerCore>(std::move(server), std::move(channels));
  BOBBIN_RETURN_IF_ERROR(core->Connect());
  return PgListener(std::move(core));
}

absl::StatusOr<PgNotification> PgListener::Next() { return core_->Next(); }

}  // namespace bobbin::db
