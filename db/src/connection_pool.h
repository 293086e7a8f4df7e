// SPDX-License-Identifier: Apache-2.0
//
// ConnectionPool: connections to a server - who has which, and who waits for one.
//
// A pool is a fixed number of members, each with a connection or without. A member is in one place:
// among the idle ones (with), among the empty ones (without), or held by a thread; who is given an
// empty one makes the connection. So a place is never lost: whatever becomes of the connection, the
// member goes to the next waiter, or back to its list. A waiter is claimed under the lock, by the
// same word by which a deadline or a cancel would end its wait; whoever loses is passed over, so
// that a member is never given to a thread that has left.
//
// Idle connections are closed in time also when nobody uses the pool: the first virtual thread that
// leaves one idle starts a keeper, a virtual thread that sleeps until the next one has been idle
// for too long, and ends when it finds none. Where only OS threads use the pool, it is done when
// they do.
//
//   Called from   Acquire, Close: virtual, platform and foreign threads. The rest: any thread.
//   Suspends      Acquire, while all are held, and while it connects; Close, while one is held, or
//                 the keeper has yet to end.
//   Cancellation  Acquire returns CANCELLED or DEADLINE_EXCEEDED and then holds nothing; Close
//                 returns the same and may be called again.
//   Errors        RESOURCE_EXHAUSTED: too many wait, or none became free in time. UNAVAILABLE: it
//                 is closed. Others: why no connection could be made.
//   Order         First come, first served. The connection that was used last is given first.
//   Cost          a spin lock and a look at the clock, and the same at the return; for one that was
//                 idle what IsAlive takes. A wait costs another look.

#ifndef BOBBIN_DB_SRC_CONNECTION_POOL_H_
#define BOBBIN_DB_SRC_CONNECTION_POOL_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/db/pool_statistics.h>

namespace bobbin::db::internal {

class ConnectionPool;

// What a pool knows of a connection. Its destructor does not wait for the server.
class PooledConnection {
 public:
  virtual ~PooledConnection() = default;

  // Whether it may go to anybody: ready for a statement, and outside a transaction.
  virtual bool IsClean() const = 0;
  // Whether its server is still there, for one that lay idle. Does not wait.
  virtual bool IsAlive() = 0;
};

// What the pools of one kind of database have in common.
struct ConnectionPoolKind {
  std::string_view database;  // For messages.
  bobbin::internal::WaitKind connection_wait;
  bobbin::internal::WaitKind return_wait;
  bobbin::internal::WaitKind keeper_wait;
};

// As the options of the same names in pg_pool.h.
struct ConnectionPoolOptions {
  size_t connections_max = 0;
  size_t waiters_max = 0;
  std::chrono::nanoseconds acquire_wait_max{0};
  std::chrono::nanoseconds lifetime_max{0};
  std::chrono::nanoseconds idle_max{0};
};

class PoolMember {
 private:
  friend class ConnectionPool;
  friend class PoolLease;

  // Its holder's; of an idle one the pool's.
  std::unique_ptr<PooledConnection> connection_;
  MonotonicTime expires_;
  bool was_idle_ = false;  // Before it was held: its server may have gone meanwhile.

  // Guarded by the lock of the pool.
  MonotonicTime since_;  // It has been idle, or held.
  const bobbin::internal::Thread* holder_ = nullptr;
  uint64_t holder_id_ = 0;
  std::array<char, 32> holder_name_ = {};  // As much of it as there is room for, and a zero.
};

// Holds a member, and with it a connection.
class PoolLease {
 public:
  PoolLease() = default;
  PoolLease(ConnectionPool& pool, PoolMember& member) : pool_(&pool), member_(&member) {}
  PoolLease(PoolLease&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        member_(std::exchange(other.member_, nullptr)) {}
  PoolLease& operator=(PoolLease&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(member_, other.member_);
    return *this;
  }
  ~PoolLease();

  PooledConnection& connection() const { return *member_->connection_; }

 private:
  ConnectionPool* pool_ = nullptr;
  PoolMember* member_ = nullptr;
};

class ConnectionPool {
 public:
  using Open = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<PooledConnection>>() const>;

  // `open` makes a connection.
  ConnectionPool(const ConnectionPoolKind& kind, ConnectionPoolOptions options, Open open);
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;
  // Closes it, if that has not been done.
  ~ConnectionPool();

  absl::StatusOr<PoolLease> Acquire();
  void Release(PoolMember& member) noexcept;

  // Refuses new calls, ends the waits, and waits for those who hold a connection.
  absl::Status Close();
  PoolStatistics Statistics() const;

 private:
  class Claim;

  // A member, with or without a connection.
  absl::StatusOr<PoolMember*> AcquireMember();
  // Gives it a connection that works, or fails.
  absl::Status MakeReady(PoolMember& member);
  absl::Status Park(Claim& self);
  absl::Status Refuse(absl::StatusCode code, std::chrono::nanoseconds waited);
  absl::Status Closed() const;

  void Hold(PoolMember& member, const Claim& holder, MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CountWait(std::chrono::nanoseconds waited) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // When the first idle connection is to be closed. REQUIRES: there is one.
  MonotonicTime NextDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The connection of a member that nobody has needed for too long, for the caller to close; null
  // if there is none.
  std::unique_ptr<PooledConnection> TakeStale(MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void StartKeeper() noexcept;
  void Keep();
  // Those who wait for the end, if this is it.
  void WakeAtEnd(bobbin::internal::WakeList& woken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool HasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::string DescribeHolders() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  absl::Status AwaitReturned();

  const ConnectionPoolKind& kind_;
  const ConnectionPoolOptions options_;
  const Open open_;
  std::vector<PoolMember> members_;

  mutable bobbin::internal::SpinLock lock_;
  std::vector<PoolMember*> idle_ ABSL_GUARDED_BY(lock_);   // The last used last.
  std::vector<PoolMember*> empty_ ABSL_GUARDED_BY(lock_);  // Without a connection.
  // Claims. slot: the member, or null.
  bobbin::internal::WaitQueue waiters_ ABSL_GUARDED_BY(lock_);
  bobbin::internal::WaitQueue keeper_ ABSL_GUARDED_BY(lock_);  // While it sleeps.
  bobbin::internal::WaitQueue end_waiters_ ABSL_GUARDED_BY(lock_);
  bool is_kept_ ABSL_GUARDED_BY(lock_) = false;  // There is a keeper, or there will be at once.
  bool is_closed_ ABSL_GUARDED_BY(lock_) = false;
  PoolStatistics statistics_ ABSL_GUARDED_BY(lock_);  // Without its first three.
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_CONNECTION_POOL_H_
