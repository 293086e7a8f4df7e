// SPDX-License-Identifier: Apache-2.0
//
// SqliteLeases: the connections of one kind - who has which, and who waits for one.
//
//   Called from   Acquire, AwaitReturned: virtual, platform and foreign threads. The rest: any
//                 thread.
//   Suspends      Acquire, while all are in use; AwaitReturned, while one is.
//   Cancellation  Acquire returns CANCELLED or DEADLINE_EXCEEDED and then holds nothing;
//                 AwaitReturned returns the same and may be called again.
//   Order         First come, first served. The connection that was used last is given first: what
//                 it has read is still in its memory.
//   Cost          a spin lock; nothing is allocated.

#ifndef BOBBIN_DB_SRC_SQLITE_LEASES_H_
#define BOBBIN_DB_SRC_SQLITE_LEASES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>

#include "db/src/sqlite_connection.h"

namespace bobbin::db::internal {

class SqliteLeases {
 public:
  // `name`, of the database, is for messages.
  explicit SqliteLeases(std::string name) : name_(std::move(name)) {}
  SqliteLeases(const SqliteLeases&) = delete;
  SqliteLeases& operator=(const SqliteLeases&) = delete;

  // Before it is used.
  void Add(std::unique_ptr<SqliteConnection> connection);
  size_t size() const { return connections_.size(); }
  SqliteConnection& connection(size_t index) { return *connections_[index]; }

  // Waits for a connection. FAILED_PRECONDITION for a thread that has one already: it would wait
  // for itself. UNAVAILABLE after Close.
  absl::StatusOr<SqliteConnection*> Acquire();
  // A connection that is free now, or null.
  SqliteConnection* TryAcquire() noexcept;
  void Release(SqliteConnection& connection) noexcept;
  // The calling thread is from now on the one that has it.
  void HandOverToCurrent(SqliteConnection& connection) noexcept;

  // Ends the waits in Acquire, and all later ones.
  void Close() noexcept;
  // Waits until all are back. REQUIRES: Close was called.
  absl::Status AwaitReturned();

 private:
  absl::Status Closed() const;

  const std::string name_;
  std::vector<std::unique_ptr<SqliteConnection>> connections_;  // Does not change once it is used.

  bobbin::internal::SpinLock lock_;
  std::vector<SqliteConnection*> free_ ABSL_GUARDED_BY(lock_);
  bobbin::internal::WaitQueue waiters_ ABSL_GUARDED_BY(lock_);  // slot: the connection, or null.
  bobbin::internal::WaitQueue end_waiters_ ABSL_GUARDED_BY(lock_);
  bool is_closed_ ABSL_GUARDED_BY(lock_) = false;
};

// Holds a connection for a scope.
class SqliteLease {
 public:
  SqliteLease(SqliteLeases& leases, SqliteConnection& connection)
      : leases_(leases), connection_(connection) {}
  SqliteLease(const SqliteLease&) = delete;
  SqliteLease& operator=(const SqliteLease&) = delete;
  ~SqliteLease() { leases_.Release(connection_); }

 private:
  SqliteLeases& leases_;
  SqliteConnection& connection_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_LEASES_H_
