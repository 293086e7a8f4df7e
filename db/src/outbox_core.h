// SPDX-License-Identifier: Apache-2.0
//
// OutboxCore: the table of an outbox, and the statements on it.
//
// States of a row: pending, sent, dead. A pending row with a `claim` belongs to the relay that has
// chosen that name for one batch, until `due_at`; without one it may be claimed from `due_at` on.
//
//   claim     pending, due  ->  pending, claimed until the lease ends
//   settle    claimed       ->  sent, or no row; or pending and due later; or dead
//   give back claimed       ->  pending, due now
//
// Why the messages of a key keep their order. Add holds the key's lock from before the row has its
// number until the commit, so that of two rows of a key the one with the smaller number was
// committed first. Who claims takes the first pending row of a key, and only that one, and then
// those behind it; the first one is in nobody else's hands, for rows are claimed under their locks,
// and looked at again when the lock has come. While it is claimed, or waits for its next attempt,
// no other row of the key is the first.
//
// Why nobody settles what he has lost: each step names the claim, and a claim's name is never used
// again.
//
//   Called from   what the database can be called from.
//   Suspends      while the database answers.

#ifndef BOBBIN_DB_SRC_OUTBOX_CORE_H_
#define BOBBIN_DB_SRC_OUTBOX_CORE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/db/database.h>
#include <bobbin/db/outbox.h>
#include <bobbin/db/outbox_relay.h>

#include "db/src/bell.h"
#include "db/src/sql_words.h"

namespace bobbin::db::internal {

class OutboxCore {
 public:
  // What becomes of a message that could not be sent.
  struct Failure {
    int64_t id = 0;
    enum class Then : uint8_t { kAgain, kDead } then = Then::kAgain;
    absl::Duration pause = absl::ZeroDuration();  // Before it is due again.
    std::string error = {};
  };

  OutboxCore(Database& database, OutboxOptions options, const SqlWords& words);
  OutboxCore(const OutboxCore&) = delete;
  OutboxCore& operator=(const OutboxCore&) = delete;

  absl::Status MakeTable();
  const OutboxOptions& options() const { return options_; }
  // Who wants to know of what is committed here.
  Bells& bells() { return bells_; }

  absl::StatusOr<int64_t> Add(Transaction& transaction, const OutboxEntry& entry);
  absl::StatusOr<OutboxCounts> Count();
  absl::StatusOr<std::vector<DeadMessage>> Dead(size_t count_max);
  absl::StatusOr<int64_t> Revive(int64_t id);
  absl::Status Discard(int64_t id);

  // Up to `count_max` messages that are due, in the order of their numbers, and from now on those
  // of `claim` for as long as `lease`.
  absl::StatusOr<std::vector<OutboxMessage>> Claim(const std::string& claim, size_t count_max,
                                                   absl::Duration lease);
  // Takes them out, or marks them as sent if they are to be kept.
  absl::Status SettleSent(const std::string& claim, std::span<const int64_t> ids,
                          absl::Duration keep);
  absl::Status SettleFailed(const std::string& claim, const Failure& failure);
  absl::Status GiveBack(const std::string& claim, std::span<const int64_t> ids);
  // All that is left of a claim.
  absl::Status GiveBackAll(const std::string& claim);
  // Takes out what was sent longer ago than `keep`. Returns how many.
  absl::StatusOr<int64_t> DropSent(absl::Duration keep);

 private:
  absl::StatusOr<std::vector<OutboxMessage>> ClaimBy(const std::string& sql, int64_t count_max,
                                                     const std::string& claim, int64_t lease_millis,
                                                     const std::string& heads);

  Database& database_;
  const OutboxOptions options_;
  const SqlWords& words_;
  Bells bells_;
  // The statements.
  std::string add_;
  std::string add_with_key_;
  std::string claim_heads_;
  std::string claim_followers_;
  std::string settle_;
  std::string keep_;
  std::string fail_;
  std::string give_back_;
  std::string give_back_all_;
  std::string drop_;
  std::string count_;
  std::string dead_;
  std::string take_dead_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_OUTBOX_CORE_H_
