// SPDX-License-Identifier: Apache-2.0

#include "db/src/connection_pool.h"

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

using bobbin::internal::SpinLockHolder;
using bobbin::internal::Thread;
using bobbin::internal::Waiter;
using bobbin::internal::Wake;
using bobbin::internal::WakeList;

namespace {

// When a connection that is made now is to be replaced: some earlier than others.
MonotonicTime ExpiryOf(std::chrono::nanoseconds lifetime) {
  const MonotonicTime now = MonotonicNow();
  const int64_t percent = 90 + now.time_since_epoch().count() % 21;
  return now + lifetime / 100 * percent;
}

}  // namespace

PoolLease::~PoolLease() {
  if (member_ != nullptr) pool_->Release(*member_);
}

ConnectionPool::ConnectionPool(const ConnectionPoolKind& kind, ConnectionPoolOptions options,
                               Open open)
    : kind_(kind), options_(options), open_(std::move(open)), members_(options.connections_max) {
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
  Waiter self(kind_.connection_wait, this);
  std::unique_ptr<PooledConnection> stale;  // Closed after the lock is given back.
  bool is_refused = false;
  {
    SpinLockHolder hold(lock_);
    if (is_closed_) return Closed();
    std::vector<PoolMember*>& source = idle_.empty() ? empty_ : idle_;
    if (!source.empty()) {
      PoolMember* const member = source.back();
      source.pop_back();
      Hold(*member, self);
      member->was_idle_ = true;
      stale = TakeStale();
      return member;
    }
    is_refused = statistics_.waiting >= options_.waiters_max;
    if (!is_refused) {
      ++statistics_.waiting;
      ++statistics_.waited;
      waiters_.PushBack(self);
    }
  }
  if (is_refused) return Refuse(absl::StatusCode::kResourceExhausted, MonotonicWait::zero());
  BOBBIN_RETURN_IF_ERROR(Park(self));
  if (self.slot == nullptr) return Closed();
  return static_cast<PoolMember*>(self.slot);
}

absl::Status ConnectionPool::Park(Waiter& self) {
  const MonotonicTime begin = MonotonicNow();
  Wake wake = Wake::kNotified;
  {
    const DeadlineScope patience(options_.acquire_wait_max);
    wake = self.Park();
  }
  const MonotonicWait waited = MonotonicNow() - begin;
  {
    SpinLockHolder hold(lock_);
    statistics_.wait_total += waited;
    statistics_.wait_max = std::max(statistics_.wait_max, waited);
    if (wake == Wake::kNotified) return absl::OkStatus();
    waiters_.Forget(self);
    --statistics_.waiting;  // Who is given a member was counted out by whoever gave it.
  }
  // Whose deadline it was: the pool's own, if the caller need not stop.
  const absl::Status stop = CheckStop();
  if (stop.ok()) return Refuse(absl::StatusCode::kResourceExhausted, waited);
  if (stop.code() == absl::StatusCode::kDeadlineExceeded) return Refuse(stop.code(), waited);
  return stop;
}

void ConnectionPool::Hold(PoolMember& member, const Waiter& holder) {
  ++statistics_.acquired;
  member.since_ = MonotonicNow();
  member.holder_ = &holder.thread();
}

absl::Status ConnectionPool::MakeReady(PoolMember& member) {
  bool was_idle = false;
  {
    const std::string_view name = this_vthread::Name();
    SpinLockHolder hold(lock_);
    was_idle = member.was_idle_;
    member.holder_id_ = this_vthread::Id();
    member.holder_name_[name.copy(member.holder_name_.data(), member.holder_name_.size() - 1)] = 0;
  }
  if (was_idle && member.connection_ != nullptr && !member.connection_->IsAlive()) {
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

std::unique_ptr<PooledConnection> ConnectionPool::TakeStale() {
  if (idle_.empty() || MonotonicNow() - idle_.front()->since_ < options_.idle_max) return nullptr;
  PoolMember* const member = idle_.front();
  idle_.erase(idle_.begin());
  empty_.push_back(member);
  return std::move(member->connection_);
}

// --- Release.

void ConnectionPool::Release(PoolMember& member) noexcept {
  const MonotonicTime now = MonotonicNow();
  const bool is_clean = member.connection_ != nullptr && member.connection_->IsClean();
  const bool is_discarded = member.connection_ != nullptr && !is_clean;
  std::unique_ptr<PooledConnection> closing;
  if (!is_clean || now >= member.expires_) closing = std::move(member.connection_);

  std::unique_ptr<PooledConnection> stale;
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    if (is_discarded) ++statistics_.discarded;
    member.holder_ = nullptr;
    member.since_ = now;
    if (is_closed_ && closing == nullptr) closing = std::move(member.connection_);
    if (Waiter* const next = waiters_.ClaimFront()) {
      --statistics_.waiting;
      Hold(member, *next);
      member.was_idle_ = false;
      next->slot = &member;
      woken.Add(*next);
    } else {
      (member.connection_ == nullptr ? empty_ : idle_).push_back(&member);
      stale = TakeStale();
      if (idle_.size() + empty_.size() == members_.size()) {
        while (Waiter* const waiter = end_waiters_.ClaimFront()) woken.Add(*waiter);
      }
    }
  }
  // The last one back lets the pool be destroyed.
  closing.reset();
  stale.reset();
  woken.Dispatch();
}

// --- Refusals.

absl::Status ConnectionPool::Refuse(absl::StatusCode code, MonotonicWait waited) {
  std::string holders;
  {
    SpinLockHolder hold(lock_);
    if (code == absl::StatusCode::kResourceExhausted) ++statistics_.refused;
    holders = DescribeHolders();
  }
  if (waited == MonotonicWait::zero()) {
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
  }
  woken.Dispatch();
  return AwaitReturned();
}

absl::Status ConnectionPool::AwaitReturned() {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Waiter self(kind_.return_wait, this);
  {
    SpinLockHolder hold(lock_);
    if (empty_.size() == members_.size()) return absl::OkStatus();
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
