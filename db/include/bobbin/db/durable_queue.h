// SPDX-License-Identifier: Apache-2.0
//
// DurableQueue: tasks that survive the process. They are rows of a table, put there within a
// transaction, and run by runners (queue_runner.h) in this process or in others.
//
// A task is run if, and only if, the transaction that has enqueued it was committed. It stays in
// the table until a run of it has succeeded. A runner holds it for the length of a lease, which it
// extends; if the runner dies, or loses the database, the lease ends and another one runs the task
// again. A task whose runs fail is run again after pauses that grow, `attempts_max` times in all,
// and then becomes a dead letter; a run that takes its process with it counts as one that fails.
//
// What is guaranteed: each task is run at least once. Exactly once, as far as its effects are in
// the same database: a body that calls QueueTask::CompleteIn has the end of the task committed with
// them; if its lease was lost meanwhile, that is refused, and nothing of it happens. What is not:
// that a body is begun once, or that two runs of a task never overlap (one that has lost its lease
// is asked to stop, and may take its time); and an order, but for the one below.
//
// Several queues may share a table: those with different names know nothing of each other.
//
//   Called from   what the database can be called from. Enqueue: within a transaction of it.
//   Suspends      while the database answers.
//   Cancellation  as Database.
//   Errors        those of the database. Open: INVALID_ARGUMENT: a name that is none;
//   UNIMPLEMENTED:
//                 a database that is neither PostgreSQL nor SQLite. Enqueue: ABORTED: its unique
//                 key came and went too often. Revive, Remove: NOT_FOUND; FAILED_PRECONDITION: it
//                 is running; Revive: ALREADY_EXISTS: its unique key.
//   Order         Greater priorities first; of one priority, what was enqueued first. A task that
//   is
//                 to run later joins when its time has come, at the place of its number.
//   Lifetime      The database must outlive it. Copies are the same queue.
//   Cost          Enqueue: a statement; with a unique key that is there already, two. With a
//                 channel, the server also serialises the commits of those who notify.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const auto queue,
//                           bobbin::db::DurableQueue::Open(database, {.name = "mail"}));
//   absl::Status ordered = database.Transact([&](bobbin::db::Transaction& transaction) {
//     ...  // The order's own rows.
//     return queue.Enqueue(transaction, {.payload = receipt, .unique_key = order}).status();
//   });

#ifndef BOBBIN_DB_DURABLE_QUEUE_H_
#define BOBBIN_DB_DURABLE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
class DurableQueueCore;
}  // namespace internal

struct DurableQueueOptions {
  std::string name = "default";
  // Letters, digits, underscores; a schema's name and a point may stand before it. Made, with its
  // indexes, if there is none.
  std::string table = "durable_queue";
  // PostgreSQL's channel that each Enqueue notifies, for runners in other processes, which then
  // need not look every now and then: see PgBell. Empty: none. Those of this process know anyway.
  std::string channel = {};
};

// What is to be done.
struct QueueEntry {
  // Bytes of any kind.
  std::string_view payload = {};
  int priority = 0;
  // Not before this, by the database's clock.
  absl::Time not_before = absl::InfinitePast();
  // Of the tasks of a queue that have not ended, running ones included, one has this key. Empty: it
  // has none.
  std::string_view unique_key = {};
  // Runs, the first one included. At least 1.
  int attempts_max = 20;
};

struct Enqueued {
  enum class How : uint8_t {
    kNew,
    kWasThere,  // One with the same unique key, which has not ended. It stays as it was.
  };
  int64_t id = 0;
  How how = How::kNew;
};

enum class QueueState : uint8_t {
  kReady,    // To be run as soon as somebody can.
  kWaiting,  // For its time, or for its next attempt.
  kRunning,  // Somebody has it; `due` is when his lease ends.
  kDone,     // Kept by QueueRunnerOptions::keep_done.
  kDead,     // It has failed too often, or with an error that does not pass.
};
// "ready"
std::string_view QueueStateName(QueueState state);

// A task as it is in the table.
struct QueueTaskInfo {
  int64_t id = 0;
  QueueState state = QueueState::kReady;
  std::string payload;
  int priority = 0;
  absl::Time created;  // Times are of the database's clock.
  absl::Time due;      // Of kDone and kDead: when it ended.
  int attempts = 0;    // That were begun, also the one that is running.
  int attempts_max = 0;
  std::string owner;  // The runner that has it.
  std::string unique_key;
  std::string error;  // Of the last attempt that failed.
};

struct QueueListOptions {
  // Empty: all.
  std::optional<QueueState> state = std::nullopt;
  size_t count_max = 100;
};

struct QueueCounts {
  int64_t ready = 0;
  int64_t waiting = 0;
  int64_t running = 0;
  int64_t done = 0;
  int64_t dead = 0;
  // How long the oldest of those that are ready has been due.
  absl::Duration lag = absl::ZeroDuration();
};

class DurableQueue {
 public:
  static absl::StatusOr<DurableQueue> Open(Database& database, DurableQueueOptions options = {});

  // Writes it, within `transaction`.
  absl::StatusOr<Enqueued> Enqueue(Transaction& transaction, const QueueEntry& entry) const;

  absl::StatusOr<QueueCounts> Count() const;
  // Its tasks, in the order in which they were enqueued.
  absl::StatusOr<std::vector<QueueTaskInfo>> List(const QueueListOptions& options = {}) const;
  // Has a dead letter run again, as if it had never failed.
  absl::Status Revive(int64_t id) const;
  // Takes out a task that nobody runs.
  absl::Status Remove(int64_t id) const;

 private:
  friend class QueueRunner;
  explicit DurableQueue(std::shared_ptr<internal::DurableQueueCore> core)
      : core_(std::move(core)) {}

  std::shared_ptr<internal::DurableQueueCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_DURABLE_QUEUE_H_
