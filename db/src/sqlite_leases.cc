// SPDX-License-Identifier: Apache-2.0

#include "db/src/sqlite_leases.h"

#include <algorithm>
#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/status.h>

namespace bobbin::db::internal {

using bobbin::internal::Current;
using bobbin::internal::SpinLockHolder;
using bobbin::internal::Thread;
using bobbin::internal::Waiter;
using bobbin::internal::WaitKind;
using bobbin::internal::WaitObject;
using bobbin::internal::Wake;
using bobbin::internal::WakeList;

namespace {
constexpr WaitKind kLeaseWait = {"sqlite connection", WaitObject::kAddress};
constexpr WaitKind kReturnWait = {"sqlite connections' return", WaitObject::kAddress};
}  // namespace

void SqliteLeases::Add(std::unique_ptr<SqliteConnection> connection) {
  SpinLockHolder hold(lock_);
  connections_.push_back(std::move(connection));
  free_.reserve(connections_.size());
  free_.push_back(connections_.back().get());
}

absl::StatusOr<SqliteConnection*> SqliteLeases::Acquire() {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Waiter self(kLeaseWait, this);
  bool has_one = false;
  {
    SpinLockHolder hold(lock_);
    if (is_closed_) return Closed();
    if (!free_.empty()) {
      SqliteConnection* const connection = free_.back();
      free_.pop_back();
      connection->holder_ = &self.thread();
      return connection;
    }
    has_one = std::any_of(connections_.begin(), connections_.end(), [&](const auto& connection) {
      return connection->holder_ == &self.thread();
    });
    if (!has_one) waiters_.PushBack(self);
  }
  if (has_one) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "sqlite " + name_ + ": the calling thread is inside a transaction of it");
  }

  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    SpinLockHolder hold(lock_);
    waiters_.Forget(self);
    return Thread::StatusOf(wake);
  }
  if (self.slot == nullptr) return Closed();
  return static_cast<SqliteConnection*>(self.slot);
}

SqliteConnection* SqliteLeases::TryAcquire() noexcept {
  SpinLockHolder hold(lock_);
  if (is_closed_ || free_.empty()) return nullptr;
  SqliteConnection* const connection = free_.back();
  free_.pop_back();
  return connection;
}

void SqliteLeases::Release(SqliteConnection& connection) noexcept {
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    if (Waiter* const next = waiters_.ClaimFront()) {
      connection.holder_ = &next->thread();
      next->slot = &connection;
      woken.Add(*next);
    } else {
      connection.holder_ = nullptr;
      free_.push_back(&connection);
      if (free_.size() == connections_.size()) {
        while (Waiter* const waiter = end_waiters_.ClaimFront()) woken.Add(*waiter);
      }
    }
  }
  woken.Dispatch();
}

void SqliteLeases::HandOverToCurrent(SqliteConnection& connection) noexcept {
  SpinLockHolder hold(lock_);
  connection.holder_ = &Current();
}

void SqliteLeases::Close() noexcept {
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    is_closed_ = true;
    while (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  }
  woken.Dispatch();
}

absl::Status SqliteLeases::AwaitReturned() {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Waiter self(kReturnWait, this);
  {
    SpinLockHolder hold(lock_);
    if (free_.size() == connections_.size()) return absl::OkStatus();
    end_waiters_.PushBack(self);
  }
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    SpinLockHolder hold(lock_);
    end_waiters_.Forget(self);
  }
  return Thread::StatusOf(wake);
}

absl::Status SqliteLeases::Closed() const {
  return MakeStatus(absl::StatusCode::kUnavailable, "sqlite " + name_ + ": it is closed");
}

}  // namespace bobbin::db::internal
