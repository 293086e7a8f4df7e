// SPDX-License-Identifier: Apache-2.0
//
// SqliteOperation: one use of a connection, and the request to end it early.
//
// It lies on the caller's stack. The caller, told to stop while its statement runs, leaves the
// request here; the statement looks at it from inside SQLite, through the progress and busy
// handlers. So a request can only ever reach the statement it was meant for: it is not left with
// the connection, where the next statement would find it, and it cannot meet a connection that is
// being closed.
//
// Rejected. sqlite3_interrupt: it means whatever runs on the connection, is forgotten if it comes
// right before the first step, and must not meet a close.
//
//   Called from   RequestStop: the caller's thread. ShouldStop: the thread that runs the statement.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_SQLITE_OPERATION_H_
#define BOBBIN_DB_SRC_SQLITE_OPERATION_H_

#include "absl/status/status.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/current.h>

namespace bobbin::db::internal {

class SqliteOperation {
 public:
  // On the caller's thread. `outer`, if there is one, is stopped together with this one.
  explicit SqliteOperation(SqliteOperation* outer = nullptr)
      : outer_(outer), caller_(bobbin::internal::Current()) {}
  SqliteOperation(const SqliteOperation&) = delete;
  SqliteOperation& operator=(const SqliteOperation&) = delete;

  // Leaves the reason for which the calling thread is to stop.
  void RequestStop() { Note(CheckStop().code()); }

  // Whether the statement should end now.
  bool ShouldStop() {
    if (StopCode() != absl::StatusCode::kOk) return true;
    if (outer_ != nullptr && outer_->ShouldStop()) Note(outer_->StopCode());
    // A caller that runs its statement itself cannot wait for a stop at the same time.
    if (&caller_ == &bobbin::internal::Current()) RequestStop();
    return StopCode() != absl::StatusCode::kOk;
  }
  // The reason; kOk if nobody has asked.
  absl::StatusCode StopCode() const {
    return code_.load(std::memory_order_relaxed);  // relaxed: only the code itself is passed on.
  }

 private:
  // A stop is never taken back.
  void Note(absl::StatusCode code) {
    if (code == absl::StatusCode::kOk) return;
    code_.store(code, std::memory_order_relaxed);  // relaxed: as above.
  }

  SqliteOperation* const outer_;
  const bobbin::internal::Thread& caller_;
  // Written by the caller, read by the thread that runs the statement.
  bobbin::internal::Atomic<absl::StatusCode> code_{absl::StatusCode::kOk};
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_OPERATION_H_
