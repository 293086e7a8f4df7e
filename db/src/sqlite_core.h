// SPDX-License-Identifier: Apache-2.0
//
// SqliteCore: what a Sqlite is made of - the connections, and the pool on which they are used.
//
// Beside those who write and read there is one connection for upkeep: it copies the log aside, and
// backs up, one at a time. Whoever finds after his commit that there is enough to be copied takes
// the upkeep, if nobody has it, and sends it to a thread of the pool; from there it goes back by
// itself. It waits for nobody meanwhile, so a pool of one thread is enough.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      all but the accessors.
//   Cancellation  Open and Run end early; RunAlways does not.

#ifndef BOBBIN_DB_SRC_SQLITE_CORE_H_
#define BOBBIN_DB_SRC_SQLITE_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/platform_pool.h>

#include "db/src/sqlite_connection.h"
#include "db/src/sqlite_leases.h"
#include "db/src/sqlite_operation.h"

namespace bobbin::db::internal {

class SqliteCore {
 public:
  using Work = absl::FunctionRef<absl::Status(SqliteSession&)>;

  explicit SqliteCore(SqliteOptions options);
  SqliteCore(const SqliteCore&) = delete;
  SqliteCore& operator=(const SqliteCore&) = delete;
  // REQUIRES: the pool can still be used.
  ~SqliteCore();

  // Before anything else.
  absl::Status Open();
  // Afterwards nothing but Close can be called.
  absl::Status Close();

  PlatformPool& pool() { return own_pool_.has_value() ? *own_pool_ : *options_.pool; }
  SqliteLeases& writer() { return writer_; }

  // Runs `work` with a session of `connection`: on a thread of the pool for a virtual thread, at
  // once for a caller that may block. `operation` ends it early when the caller is to stop.
  // REQUIRES: the caller has the connection.
  absl::Status Run(SqliteConnection& connection, SqliteOperation& operation, Work work);
  // The same, but neither a stop nor a full pool keeps it from running to its end.
  absl::Status RunAlways(SqliteConnection& connection, Work work);

  // One statement that is a transaction by itself.
  absl::StatusOr<SqliteAnswer> RunStatement(std::string_view sql, std::span<const Param> params,
                                            SqliteWanted wanted);
  // Runs `work` with the writer, once it is the caller's turn.
  absl::Status RunOnWriter(Work work);
  // The connection from which a copy is made: of upkeep, or the only one that there is.
  SqliteLeases& upkeep() { return upkeep_.size() != 0 ? upkeep_ : writer_; }
  SqliteStatistics Statistics();

 private:
  // Closes the connections of `leases`, all of which are back.
  absl::Status CloseAll(SqliteLeases& leases);
  absl::StatusOr<SqliteAnswer> RunStatementOn(SqliteLeases& leases, std::string_view sql,
                                              std::span<const Param> params, SqliteWanted wanted);
  // After a session of `connection`: has the log copied, if it is time.
  void TendLog(const SqliteConnection& connection);
  void CopyLog(SqliteConnection& connection);

  const SqliteOptions options_;
  std::optional<PlatformPool> own_pool_;
  SqliteLeases writer_;
  SqliteLeases readers_;
  SqliteLeases upkeep_;
  Mutex close_mutex_;
  bool is_closed_ ABSL_GUARDED_BY(close_mutex_) = false;
  // Of the log, when it was last sent to be copied. Whoever has the writer.
  int64_t copied_bytes_ = 0;
  // Written by whoever copies, read by anyone.
  bobbin::internal::Atomic<uint64_t> checkpoints_{0};
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_CORE_H_
