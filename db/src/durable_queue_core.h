// SPDX-License-Identifier: Apache-2.0
//
// DurableQueueCore: the table of a durable queue, and the statements on it.
//
// States of a row: ready; hidden, until `due_at`; done; dead. A hidden row with an `owner` is being
// run, and `due_at` is the end of the lease; without one it waits for its time.
//
//   promote   hidden, due   ->  ready; or dead, if its last attempt took its runner with it
//   claim     ready         ->  hidden, owned, one token and one attempt more
//   extend    owned         ->  owned, due later
//   complete  owned         ->  done, or no row
//   fail      owned         ->  hidden, due later; or dead
//   release   owned         ->  ready, one attempt less
//
// Why a run that has lost its lease changes nothing: each step of a run names the token of its
// claim and wants the row to be hidden. Once it is promoted it is not; once it is claimed again,
// its token is another one, for no step makes it smaller. A complete in a transaction holds the
// row's lock until the commit, and promotions pass over rows that are locked.
//
//   Called from   what the database can be called from.
//   Suspends      while the database answers.

#ifndef BOBBIN_DB_SRC_DURABLE_QUEUE_CORE_H_
#define BOBBIN_DB_SRC_DURABLE_QUEUE_CORE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/db/database.h>
#include <bobbin/db/durable_queue.h>

#include "db/src/bell.h"
#include "db/src/sql_words.h"

namespace bobbin::db::internal {

class DurableQueueCore {
 public:
  // Which run of which task.
  struct RunKey {
    int64_t id = 0;
    int64_t token = 0;
  };
  struct Claimed {
    RunKey key = {};
    std::string payload = {};
    int priority = 0;
    int attempt = 0;
    int attempts_max = 0;
    absl::Time created = {};
  };
  // What becomes of a task whose run has failed.
  struct Failure {
    enum class Then : uint8_t { kAgain, kDead } then = Then::kAgain;
    absl::Duration pause = absl::ZeroDuration();
    std::string error = {};
  };
  // Whether a step was made: not, if the run has lost its lease.
  enum class Step : uint8_t { kMade, kLost };

  DurableQueueCore(Database& database, DurableQueueOptions options, const SqlWords& words);
  DurableQueueCore(const DurableQueueCore&) = delete;
  DurableQueueCore& operator=(const DurableQueueCore&) = delete;

  absl::Status MakeTable();
  const DurableQueueOptions& options() const { return options_; }
  Database& database() { return database_; }
  // Who wants to know of what is committed here.
  Bells& bells() { return bells_; }

  absl::StatusOr<Enqueued> Enqueue(Transaction& transaction, const QueueEntry& entry);
  absl::StatusOr<QueueCounts> Count();
  absl::StatusOr<std::vector<QueueTaskInfo>> List(const QueueListOptions& options);
  absl::Status Revive(int64_t id);
  absl::Status Remove(int64_t id);

  // Makes ready what is due. Returns how many have become dead instead.
  absl::StatusOr<int64_t> Promote();
  // Up to `count_max` that are ready, in the order in which they are to be run.
  absl::StatusOr<std::vector<Claimed>> Claim(const std::string& owner, size_t count_max,
                                             absl::Duration lease);
  // In how long something hidden is due; nothing if nothing is hidden.
  absl::StatusOr<std::optional<absl::Duration>> NextDue();
  // Those of `runs` that `owner` still has; from now on for as long as `lease`, but for those that
  // one of his transactions has locked.
  absl::StatusOr<std::vector<RunKey>> Extend(const std::string& owner, std::span<const int64_t> ids,
                                             absl::Duration lease);
  // In a transaction, or on the database itself.
  absl::StatusOr<Step> Complete(Statements& statements, const RunKey& key, absl::Duration keep);
  absl::StatusOr<Step> Fail(const RunKey& key, const Failure& failure);
  absl::StatusOr<Step> Release(const RunKey& key);
  // All that `owner` has, but for these.
  absl::Status ReleaseOthers(const std::string& owner, std::span<const int64_t> ids);
  // Takes out what was done longer ago than `keep`.
  absl::Status DropDone(absl::Duration keep);

 private:
  absl::Status WhyNot(std::string_view operation, int64_t id);

  Database& database_;
  const DurableQueueOptions options_;
  const SqlWords& words_;
  Bells bells_;
  // The statements.
  std::string enqueue_;
  std::string find_unique_;
  std::string promote_;
  std::string claim_;
  std::string next_due_;
  std::string extend_;
  std::string look_;
  std::string take_;
  std::string keep_;
  std::string fail_;
  std::string release_;
  std::string release_others_;
  std::string drop_;
  std::string count_;
  std::string list_;
  std::string revive_;
  std::string remove_;
  std::string find_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_DURABLE_QUEUE_CORE_H_
