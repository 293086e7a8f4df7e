// SPDX-License-Identifier: Apache-2.0
//
// PgPoolCore: the connections of a pool - who has which, and who waits for one.
//
// A pool is a fixed number of members, each with a connection or without. A member is in one place:
// among the idle ones (with), among the empty ones (without), or held by a thread; who is given an
// empty one makes the connection. So a place is never lost: whatever becomes of the connection, the
// member goes to the next waiter, or back to its list. A waiter is claimed under the lock, by the
// same word by which a deadline or a cancel would end its wait; whoever loses is passed over, so
// that a member is never given to a thread that has left.
//
//   Called from   Acquire, AwaitReturned: virtual, platform and foreign threads. The rest: any
//                 thread.
//   Suspends      Acquire, while all are held, and while it connects; AwaitReturned, while one is
//                 held.
//   Cancellation  Acquire returns CANCELLED or DEADLINE_EXCEEDED and then holds nothing;
//                 AwaitReturned returns the same and may be called again.
//   Order         First come, first served. The connection that was used last is given first.
//   Cost          a spin lock and a look at the clock, and the same at the return. For one that was
//                 idle a system call that looks whether the server is there.

#ifndef BOBBIN_DB_SRC_PG_POOL_CORE_H_
#define BOBBIN_DB_SRC_PG_POOL_CORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/db/pg_pool.h>

#include "db/src/pg_connection.h"

namespace bobbin::db::internal {

class PgMember {
 private:
  friend class PgLease;
  friend class PgPoolCore;

  // Its holder's; of an idle one the pool's.
  std::unique_ptr<PgConnection> connection_;
  MonotonicTime expires_;

  // Guarded by the lock of the pool.
  MonotonicTime since_;    // It has been idle, or held.
  bool was_idle_ = false;  // Before it was held: its server may have gone meanwhile.
  const bobbin::internal::Thread* holder_ = nullptr;
  uint64_t holder_id_ = 0;
  std::array<char, 32> holder_name_ = {};  // As much of it as there is room for, and a zero.
};

// Holds a member, and with it a connection.
class PgLease {
 public:
  PgLease() = default;
  PgLease(PgPoolCore& pool, PgMember& member) : pool_(&pool), member_(&member) {}
  PgLease(PgLease&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        member_(std::exchange(other.member_, nullptr)) {}
  PgLease& operator=(PgLease&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(member_, other.member_);
    return *this;
  }
  ~PgLease();

  PgConnection& connection() const { return *member_->connection_; }

 private:
  PgPoolCore* pool_ = nullptr;
  PgMember* member_ = nullptr;
};

class PgPoolCore {
 public:
  explicit PgPoolCore(PgPoolOptions options);
  PgPoolCore(const PgPoolCore&) = delete;
  PgPoolCore& operator=(const PgPoolCore&) = delete;
  ~PgPoolCore();

  absl::StatusOr<PgLease> Acquire();
  void Release(PgMember& member) noexcept;

  // Refuses new calls and ends the waits.
  absl::Status Close();
  PgPoolStatistics Statistics() const;
  const PgServer& server() const { return options_.server; }

 private:
  using MonotonicWait = std::chrono::nanoseconds;

  // A member, with or without a connection.
  absl::StatusOr<PgMember*> AcquireMember();
  // Gives it a connection that works, or fails.
  absl::Status MakeReady(PgMember& member);
  absl::Status Park(bobbin::internal::Waiter& self);
  absl::Status Refuse(absl::StatusCode code, MonotonicWait waited);
  absl::Status Closed() const;

  void Hold(PgMember& member, const bobbin::internal::Waiter& holder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The connection of a member that nobody has needed for too long, for the caller to close.
  std::unique_ptr<PgConnection> TakeStale() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::string DescribeHolders() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  absl::Status AwaitReturned();

  const PgPoolOptions options_;
  std::vector<PgMember> members_;

  mutable bobbin::internal::SpinLock lock_;
  std::vector<PgMember*> idle_ ABSL_GUARDED_BY(lock_);          // The last used last.
  std::vector<PgMember*> empty_ ABSL_GUARDED_BY(lock_);         // Without a connection.
  bobbin::internal::WaitQueue waiters_ ABSL_GUARDED_BY(lock_);  // slot: the member, or null.
  bobbin::internal::WaitQueue end_waiters_ ABSL_GUARDED_BY(lock_);
  bool is_closed_ ABSL_GUARDED_BY(lock_) = false;
  PgPoolStatistics statistics_ ABSL_GUARDED_BY(lock_);  // Without its first three.
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_POOL_CORE_H_
