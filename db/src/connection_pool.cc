// SPDX-License-Identifier: Apache-2.0

#include "db/src/connection_pool.h"

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/internal/housekeeping.h>
#include <bobbin/sched/spawn.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

using bobbin::internal::SpinLockHolder;
using bobbin::internal::Thread;
using bobbin::internal::Waiter;
using bobbin::internal::Wake;
using bobbin::internal::WakeList;

using std::chrono::nanoseconds;

namespace {

ConnectionPoolOptions Completed(ConnectionPoolOptions options) {
  options.connections_max = std::clamp(options.connections_max, size_t{1}, kPoolConnectionsMax);
  options.lifetime_max = std::min<nanoseconds>(options.lifetime_max, kPoolTimeMax);
  options.idle_max = std::min<nanoseconds>(options.idle_max, kPoolTimeMax);
  return options;
}

// When a connection that is made now is to be replaced: some earlier than others.
MonotonicTime ExpiryOf(nanoseconds lifetime) {
  const MonotonicTime now = MonotonicNow();
  const int64_t percent = 90 + now.time_since_epoch().count() % 21;
  return now + lifetime / 100 * percent;
}

}  // namespace

// The wish of the calling thread for a connection.
class ConnectionPool::Claim : public Waiter {
 public:
  explicit Claim(const ConnectionPool& pool) : Waiter(pool.kind_.connection_wait, &pool) {}

  const MonotonicTime begin = MonotonicNow();
  const uint64_t id = this_vthread::Id();
  const std::string_view name = this_vthread::Name();  // The thread's own: for while it waits.
};

PoolLease::~PoolLease() {
  if (member_ != nullptr) pool_->Release(*member_);
}

ConnectionPool::ConnectionPool(const ConnectionPoolKind& kind, ConnectionPoolOptions options,
                               Open open)
    : kind_(kind),
      options_(Completed(options)),
      open_(std::move(open)),
      members_(options_.connections_max) {
  SpinLockHolder hold(lock_);
  idle_.reserve(members_.size());
  empty_.reserve(members_.size());
  for (PoolMember& member : members_) empty_.push_back(&member);
}

ConnectionPool::~ConnectionPool() {
  const CancelShield shield;
  const absl::Status status = Close();
  BOBBIN_CHECK(status.ok(), MessageOf(status));
}

// --- Acquire.

absl::StatusOr<PoolLease> ConnectionPool::Acquire() {
  BOBBIN_ASSIGN_OR_RETURN(PoolMember* const member, AcquireMember());
  PoolLease lease(*this, *member);  // Goes back, with or without a connection, if this fails.
  BOBBIN_RETURN_IF_ERROR(MakeReady(*member));
  return lease;
}

absl::StatusOr<PoolMember*> ConnectionPool::AcquireMember() {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Claim self(*this);
  std::unique_ptr<PooledConnection> stale;  // Closed after the lock is given back.
  bool is_refused = false;
  {
    SpinLockHolder hold(lock_);
    if (is_closed_) return Closed();
    std::vector<PoolMember*>& source = idle_.empty() ? empty_ : idle_;
    if (!source.empty()) {
      PoolMember* const member = source.back();
      source.pop_back();
      Hold(*member, self, self.begin);
      member->was_idle_ = true;
      if (!is_kept_) stale = TakeStale(self.begin);
      return member;
    }
    is_refused = statistics_.waiting >= options_.waiters_max;
    if (!is_refused) {
      ++statistics_.waiting;
      ++statistics_.waited;
      waiters_.PushBack(self);
    }
  }
  if (is_refused) return Refuse(absl::StatusCode::kResourceExhausted, nanoseconds::zero());
  BOBBIN_RETURN_IF_ERROR(Park(self));
  if (self.slot == nullptr) return Closed();
  return static_cast<PoolMember*>(self.slot);
}

absl::Status ConnectionPool::Park(Claim& self) {
  Wake wake = Wake::kNotified;
  {
    const DeadlineScope patience(options_.acquire_wait_max);
    wake = self.Park();
  }
  // Whoever gave it a member has counted the wait, too.
  if (wake == Wake::kNotified) return absl::OkStatus();
  const nanoseconds waited = MonotonicNow() - self.begin;
  {
    SpinLockHolder hold(lock_);
    CountWait(waited);
    waiters_.Forget(self);
  }
  // Whose deadline it was: the pool's own, if the caller need not stop.
  const absl::Status stop = CheckStop();
  if (stop.ok()) return Refuse(absl::StatusCode::kResourceExhausted, waited);
  if (stop.code() == absl::StatusCode::kDeadlineExceeded) return Refuse(stop.code(), waited);
  return stop;
}

void ConnectionPool::CountWait(nanoseconds waited) {
  --statistics_.waiting;
  statistics_.wait_total += waited;
  statistics_.wait_max = std::max(statistics_.wait_max, waited);
}

void ConnectionPool::Hold(PoolMember& member, const Claim& holder, MonotonicTime now) {
  ++statistics_.acquired;
  member.since_ = now;
  member.holder_ = &holder.thread();
  member.holder_id_ = holder.id;
  const size_t shown = holder.name.copy(member.holder_name_.data(), member.holder_name_.size() - 1);
  member.holder_name_[shown] = 0;
}

absl::Status ConnectionPool::MakeReady(PoolMember& member) {
  if (member.was_idle_ && member.connection_ != nullptr && !member.connection_->IsAlive()) {
    member.connection_.reset();
    SpinLockHolder hold(lock_);
    ++statistics_.discarded;
  }
  if (member.connection_ != nullptr) return absl::OkStatus();

  absl::StatusOr<std::unique_ptr<PooledConnection>> opened = open_();
  {
    SpinLockHolder hold(lock_);
    ++(opened.ok() ? statistics_.opened : statistics_.open_failed);
  }
  if (!opened.ok()) return opened.status();
  member.connection_ = *std::move(opened);
  member.expires_ = ExpiryOf(options_.lifetime_max);
  return absl::OkStatus();
}

// --- Release.

void ConnectionPool::Release(PoolMember& member) noexcept {
  const MonotonicTime now = MonotonicNow();
  const bool is_clean = member.connection_ != nullptr && member.connection_->IsClean();
  const bool is_discarded = member.connection_ != nullptr && !is_clean;
  std::unique_ptr<PooledConnection> closing;
  if (!is_clean || now >= member.expires_) closing = std::move(member.connection_);

  std::unique_ptr<PooledConnection> stale;
  bool needs_keeper = false;
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    if (is_discarded) ++statistics_.discarded;
    member.holder_ = nullptr;
    member.since_ = now;
    if (is_closed_ && closing == nullptr) closing = std::move(member.connection_);
    if (auto* const next = static_cast<Claim*>(waiters_.ClaimFront())) {
      CountWait(now - next->begin);
      Hold(member, *next, now);
      member.was_idle_ = false;
      next->slot = &member;
      woken.Add(*next);
    } else if (member.connection_ == nullptr) {
      empty_.push_back(&member);
      WakeAtEnd(woken);
    } else {
      idle_.push_back(&member);
      if (!is_kept_) stale = TakeStale(now);
      needs_keeper = !is_kept_ && CurrentRole() == Role::kVirtual;
      is_kept_ |= needs_keeper;
    }
  }
  // The last one back lets the pool be destroyed.
  closing.reset();
  stale.reset();
  if (needs_keeper) StartKeeper();
  woken.Dispatch();
}

// --- Idle connections.

MonotonicTime ConnectionPool::NextDue() const {
  MonotonicTime due = idle_.front()->since_ + options_.idle_max;
  for (const PoolMember* const member : idle_) due = std::min(due, member->expires_);
  return due;
}

std::unique_ptr<PooledConnection> ConnectionPool::TakeStale(MonotonicTime now) {
  const auto stale = std::find_if(idle_.begin(), idle_.end(), [&](const PoolMember* member) {
    return now - member->since_ >= options_.idle_max || now >= member->expires_;
  });
  if (stale == idle_.end()) return nullptr;
  PoolMember* const member = *stale;
  idle_.erase(stale);
  empty_.push_back(member);
  return std::move(member->connection_);
}

void ConnectionPool::StartKeeper() noexcept {
  // Where the runtime has no room for it, the next one who leaves a connection idle tries again.
  auto keeper = TrySpawn({.name = kind_.database}, [this] { Keep(); });
  if (keeper.ok()) return std::move(*keeper).Detach();
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    is_kept_ = false;
    WakeAtEnd(woken);
  }
  woken.Dispatch();
}

void ConnectionPool::Keep() {
  const bobbin::internal::HousekeepingScope scope;
  WakeList woken;
  while (true) {
    std::unique_ptr<PooledConnection> stale;  // Closed after the lock is given back.
    Waiter self(kind_.keeper_wait, this);
    MonotonicTime due;
    const bool is_stopped = !CheckStop().ok();
    {
      SpinLockHolder hold(lock_);
      if (idle_.empty() || is_stopped) {
        is_kept_ = false;
        WakeAtEnd(woken);
        break;
      }
      stale = TakeStale(MonotonicNow());
      if (stale == nullptr) {
        due = NextDue();
        keeper_.PushBack(self);
      }
    }
    if (stale != nullptr) continue;
    const DeadlineScope until_due(Deadline::At(due));
    if (self.Park() == Wake::kNotified) continue;
    SpinLockHolder hold(lock_);
    keeper_.Forget(self);
  }
  // The last that is done with the pool: from here on it may be destroyed.
  woken.Dispatch();
}

// --- Refusals.

absl::Status ConnectionPool::Refuse(absl::StatusCode code, nanoseconds waited) {
  std::string holders;
  {
    SpinLockHolder hold(lock_);
    if (code == absl::StatusCode::kResourceExhausted) ++statistics_.refused;
    holders = DescribeHolders();
  }
  if (waited == nanoseconds::zero()) {
    return MakeStatus(code, fmt::format("acquire {} connection: {} wait for one already, the most "
                                        "that waiters_max allows; {}",
                                        kind_.database, options_.waiters_max, holders));
  }
  return MakeStatus(
      code, fmt::format("acquire {} connection: none of the {} that connections_max allows has "
                        "become free within {:.3f} s; {}",
                        kind_.database, members_.size(),
                        absl::ToDoubleSeconds(absl::FromChrono(waited)), holders));
}

std::string ConnectionPool::DescribeHolders() const {
  const Thread* const self = &bobbin::internal::Current();
  const MonotonicTime now = MonotonicNow();
  std::string text = "held by";
  size_t shown = 0;
  for (const PoolMember& member : members_) {
    if (member.holder_ == nullptr) continue;
    if (shown++ == kHoldersShown) {
      text += ", and others";
      break;
    }
    if (shown > 1) text += ',';
    if (member.holder_ == self) {
      text += " the calling thread itself";
    } else if (member.holder_id_ == 0) {
      text += " an OS thread";
    } else {
      text += fmt::format(" {} \"{}\"", member.holder_id_, member.holder_name_.data());
    }
    text +=
        fmt::format(" for {:.3f} s", absl::ToDoubleSeconds(absl::FromChrono(now - member.since_)));
  }
  return shown == 0 ? "held by nobody now" : text;
}

absl::Status ConnectionPool::Closed() const {
  return MakeStatus(absl::StatusCode::kUnavailable,
                    fmt::format("{} pool: it is closed", kind_.database));
}

// --- Close.

absl::Status ConnectionPool::Close() {
  std::vector<std::unique_ptr<PooledConnection>> closing;
  closing.reserve(members_.size());
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    is_closed_ = true;
    while (Waiter* const waiter = waiters_.ClaimFront()) {
      --statistics_.waiting;
      waiter->slot = nullptr;
      woken.Add(*waiter);
    }
    for (PoolMember* const member : idle_) {
      closing.push_back(std::move(member->connection_));
      empty_.push_back(member);
    }
    idle_.clear();
    while (Waiter* const keeper = keeper_.ClaimFront()) woken.Add(*keeper);
  }
  woken.Dispatch();
  return AwaitReturned();
}

bool ConnectionPool::HasEnded() const {
  return is_closed_ && empty_.size() == members_.size() && !is_kept_;
}

void ConnectionPool::WakeAtEnd(WakeList& woken) {
  if (!HasEnded()) return;
  while (Waiter* const waiter = end_waiters_.ClaimFront()) woken.Add(*waiter);
}

absl::Status ConnectionPool::AwaitReturned() {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Waiter self(kind_.return_wait, this);
  {
    SpinLockHolder hold(lock_);
    if (HasEnded()) return absl::OkStatus();
    end_waiters_.PushBack(self);
  }
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    SpinLockHolder hold(lock_);
    end_waiters_.Forget(self);
  }
  return Thread::StatusOf(wake);
}

PoolStatistics ConnectionPool::Statistics() const {
  SpinLockHolder hold(lock_);
  PoolStatistics now = statistics_;
  now.idle = idle_.size();
  now.held = members_.size() - idle_.size() - empty_.size();
  now.open = now.idle + now.held;
  return now;
}

}  // namespace bobbin::db::internal
