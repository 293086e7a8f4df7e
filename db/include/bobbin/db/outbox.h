// SPDX-License-Identifier: Apache-2.0
//
// Outbox: messages that leave the database if, and only if, the transaction that made them was
// committed.
//
// Add writes a message into a table, as a part of the transaction that it tells about. A relay
// (outbox_relay.h), in this process or in others, sends what was committed, and takes it out.
// Nothing is sent that was rolled back, nothing that was committed is lost, whatever dies when.
//
// What is guaranteed: each message is sent at least once; the messages of a key, in their topic,
// are sent in the order in which their transactions were committed, one at a time. What is not:
// that it is sent once (a relay that dies between sending a message and writing that down leaves it
// to be sent again; its number is then the same), and an order between keys, or of messages without
// one. A message that becomes a dead letter no longer holds up those behind it.
//
// For that order a message with a key has its transaction wait for others that have added one with
// the same key, until they end. Transactions that add several keys add them in the same order, or
// else the database may end one of them with ABORTED.
//
//   Called from   what the database can be called from. Add: within a transaction of it.
//   Suspends      while the database answers.
//   Cancellation  as Database.
//   Errors        those of the database. Open: INVALID_ARGUMENT: a name that is none;
//   UNIMPLEMENTED:
//                 a database that is neither PostgreSQL nor SQLite. Revive, Discard: NOT_FOUND.
//   Lifetime      The database must outlive it. Copies are the same outbox.
//   Cost          Add: a statement. With a channel, the server also serialises the commits of those
//                 who notify.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const auto outbox, bobbin::db::Outbox::Open(database));
//   absl::Status placed = database.Transact([&](bobbin::db::Transaction& transaction) {
//     ...  // The order's own rows.
//     return outbox.Add(transaction, {.topic = "orders", .key = customer, .payload =
//     json}).status();
//   });

#ifndef BOBBIN_DB_OUTBOX_H_
#define BOBBIN_DB_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/db/database.h>

namespace bobbin::db {

namespace internal {
class OutboxCore;
}  // namespace internal

struct OutboxOptions {
  // Letters, digits, underscores; a schema's name and a point may stand before it. Made, with its
  // indexes, if there is none.
  std::string table = "outbox";
  // PostgreSQL's channel that each Add notifies, for relays in other processes, which then need not
  // look every now and then: see PgBell. Empty: none. Those of this process know anyway.
  std::string channel = {};
};

// What is to be sent.
struct OutboxEntry {
  std::string_view topic = {};
  // Of what the messages are to keep their order. Empty: of nothing.
  std::string_view key = {};
  // Bytes of any kind.
  std::string_view payload = {};
};

// A dead letter: it has failed too often, or with an error that does not pass.
struct DeadMessage {
  int64_t id = 0;
  std::string topic;
  std::string key;
  std::string payload;
  absl::Time created;  // By the database's clock.
  int64_t attempts = 0;
  std::string error;  // Of the last one.
};

struct OutboxCounts {
  int64_t pending = 0;  // Committed, and not sent.
  int64_t sent = 0;     // Those that were kept.
  int64_t dead = 0;
  // How long the oldest of the pending ones has been there.
  absl::Duration lag = absl::ZeroDuration();
};

class Outbox {
 public:
  static absl::StatusOr<Outbox> Open(Database& database, OutboxOptions options = {});

  // Writes it, within `transaction`. Returns its number, which grows with the commits of a key.
  absl::StatusOr<int64_t> Add(Transaction& transaction, const OutboxEntry& entry) const;

  absl::StatusOr<OutboxCounts> Count() const;

  // The dead letters, those that were added first at the front.
  absl::StatusOr<std::vector<DeadMessage>> Dead(size_t count_max = 100) const;
  // Has a dead letter sent after all, behind those of its key that are there now, under a new
  // number, which is returned.
  absl::StatusOr<int64_t> Revive(int64_t id) const;
  // Takes a dead letter out.
  absl::Status Discard(int64_t id) const;

 private:
  friend class OutboxRelay;
  explicit Outbox(std::shared_ptr<internal::OutboxCore> core) : core_(std::move(core)) {}

  std::shared_ptr<internal::OutboxCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_OUTBOX_H_
