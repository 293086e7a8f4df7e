// SPDX-License-Identifier: Apache-2.0
//
// SqliteCore: what a Sqlite is made of - the connections, and the pool on which they are used.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      all but the accessors.
//   Cancellation  Open and Run end early; RunAlways does not.

#ifndef BOBBIN_DB_SRC_SQLITE_CORE_H_
#define BOBBIN_DB_SRC_SQLITE_CORE_H_

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

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

 private:
  // Closes the connections of `leases`, all of which are back.
  absl::Status CloseAll(SqliteLeases& leases);
  absl::StatusOr<SqliteAnswer> RunStatementOn(SqliteLeases& leases, std::string_view sql,
                                              std::span<const Param> params, SqliteWanted wanted);

  const SqliteOptions options_;
  std::optional<PlatformPool> own_pool_;
  SqliteLeases writer_;
  SqliteLeases readers_;
  Mutex close_mutex_;
  bool is_closed_ ABSL_GUARDED_BY(close_mutex_) = false;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_CORE_H_
