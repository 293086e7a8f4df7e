// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/spin_lock.h>

#include "core/src/local_table.h"

namespace bobbin::internal {

namespace {

// Records whose OS thread has exited.
struct RecordPool {
  SpinLock lock;
  OsThread* first ABSL_GUARDED_BY(lock) = nullptr;
  OsThread* last_made ABSL_GUARDED_BY(lock) = nullptr;  // All there are, linked by next_made_.
};

RecordPool& Records() {
  // Never destroyed: OS threads may exit after static destruction has begun.
  static RecordPool* const pool = std::make_unique<RecordPool>().release();
  return *pool;
}

}  // namespace

OsThread& OsThread::Adopt() noexcept {
  RecordPool& pool = Records();
  OsThread* record;
  {
    SpinLockHolder hold(pool.lock);
    record = pool.first;
    if (record != nullptr) pool.first = record->next_free_;
  }
  if (record == nullptr) {
    record = std::make_unique<OsThread>().release();
    SpinLockHolder hold(pool.lock);
    record->next_made_ = std::exchange(pool.last_made, record);
  }
  record->os_thread_.store(gettid());
  record->state_.Reset(Phase::kRunning);
  // It has no carrier, ever. relaxed: private.
  record->cancel_.store(CancelState::kNone, std::memory_order_relaxed);
  AtThreadExit(&Retire, record);
  return *record;
}

void OsThread::Retire(void* record) noexcept {
  auto& thread = *static_cast<OsThread*>(record);
  SetCurrent(&thread);  // For destructors of locals that ask who they are.
  LocalTable::Destroy(thread.locals_);
  SetCurrent(nullptr);
  BOBBIN_CHECK(thread.governing_ == nullptr && thread.shield_depth_ == 0 &&
                   thread.context_values_ == nullptr,
               "an OS thread exits inside a scope that it began");
  thread.ClearDescription();
  thread.os_thread_.store(0);
  RecordPool& pool = Records();
  SpinLockHolder hold(pool.lock);
  thread.next_free_ = pool.first;
  pool.first = &thread;
}

void OsThread::ClearDescription() noexcept { Describe(Role::kForeign, "", nullptr); }

void OsThread::ForEach(absl::FunctionRef<void(const OsThread&)> visit) noexcept {
  RecordPool& pool = Records();
  SpinLockHolder hold(pool.lock);
  for (const OsThread* record = pool.last_made; record != nullptr; record = record->next_made_) {
    if (record->os_thread() != 0) visit(*record);
  }
}

void OsThread::Describe(Role role, std::string_view name, void* runtime) noexcept {
  SpinLockHolder hold(Records().lock);
  role_ = role;
  runtime_ = runtime;
  const size_t length = std::min(name.size(), kNameBytes - 1);
  std::memcpy(name_, name.data(), length);
  name_[length] = '\0';
}

namespace {
Atomic<uint64_t> threads_waiting_for_good{0};  // Written by those who wait and those who wake.
}  // namespace

uint64_t OsThread::waiting_for_good() noexcept { return threads_waiting_for_good.load(); }

uint32_t OsThread::BeginWaitingForGood() noexcept {
  threads_waiting_for_good.fetch_add(1);
  uint32_t signal = kNone;
  if (signal_.compare_exchange_strong(signal, kWaitsForGood)) return kWaitsForGood;
  threads_waiting_for_good.fetch_sub(1);
  return kNone;
}

void OsThread::BlockUntilWoken() noexcept {
  const int64_t never = Deadline::Never().nanoseconds();
  int64_t deadline = governing_ == nullptr ? never : governing_->deadline;
  if (state_.phase() == Phase::kWaitingShielded) deadline = never;
  uint32_t waiting = deadline == never ? BeginWaitingForGood() : kNone;
  // Pairs with the exchange in Wake.
  for (uint32_t woken = kWoken;
       !signal_.compare_exchange_strong(woken, kNone, std::memory_order_acquire); woken = kWoken) {
    if (__builtin_expect(woken == kPoked, 0)) {
      if (EndsForCancel()) return;
      waiting = deadline == never ? BeginWaitingForGood() : kNone;
      continue;
    }
    if (FutexWait(signal_, waiting, deadline)) continue;
    governing_->has_expired = true;
    // Nobody owes a wake-up to a thread that ended its own wait.
    if (state_.TryInterrupt(bobbin::internal::Wake::kExpired)) return;
    deadline = never;
  }
}

bool OsThread::EndsForCancel() noexcept {
  uint32_t poked = kPoked;
  static_cast<void>(signal_.compare_exchange_strong(poked, kNone));  // Fails if it was woken since.
  // An interrupted wait is nobody else's to end; one that was notified meanwhile has a wake coming.
  return state_.phase() != Phase::kWaitingShielded && IsCancelled() &&
         state_.TryInterrupt(bobbin::internal::Wake::kCancelled);
}

void OsThread::Poke() noexcept {
  uint32_t signal = signal_.load();
  do {
    if (signal == kWoken) return;  // Its wait has ended; its next one looks first.
  } while (!signal_.compare_exchange_weak(signal, kPoked));
  if (signal == kWaitsForGood) threads_waiting_for_good.fetch_sub(1);
  FutexWakeOne(signal_);
}

void OsThread::Wake() noexcept {
  // Pairs with the acquire in BlockUntilWoken. From here on it may run, so it does not wait.
  if (signal_.exchange(kWoken, std::memory_order_acq_rel) == kWaitsForGood) {
    threads_waiting_for_good.fetch_sub(1);
  }
  FutexWakeOne(signal_);
}

}  // namespace bobbin::internal
