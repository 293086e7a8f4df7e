// SPDX-License-Identifier: Apache-2.0
//
// Guarded: a value and its mutex in one; there is no way to the value but through a lock. Held: the
// lock, and the way.
//
// For data that several threads change. Where one mutex guards several fields of a class, use Mutex
// and annotations; for data that is mostly read, SharedMutex; to hand values over, Channel.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Lock, LockUntil and With, while another thread holds it. Await and AwaitUntil,
//                 until the predicate is true and the lock is held again.
//   Cancellation  Lock and With ignore it. LockUntil returns CANCELLED or DEADLINE_EXCEEDED and
//                 holds nothing. So does an Await, but it holds the lock in every case: the wait
//                 for it ignores both. A thread that is to stop does not give the lock up at all.
//   Order         That of Mutex. Of those whose predicates become true, the one that waits longest
//                 is woken first; a third thread may take the lock before it, then it goes on
//                 waiting.
//   Memory        That of Mutex.
//   Lifetime      May be destroyed by its last holder, right after its lock was had: an unlock does
//                 not touch it once another thread can have it. Destroying it while it is held or
//                 waited for aborts.
//   Cost          That of Mutex. While threads await something, the unlock of a holder that could
//                 change the value, and of one that has awaited, calls their predicates, and wakes
//                 one thread at most.
//
// A predicate looks at the value and at what its owner has captured, nothing else. It is called by
// whichever thread unlocks, so it must not wait (that aborts) or throw (that ends the process).
//
// Example:
//   bobbin::Guarded<absl::flat_hash_map<std::string, Session>> sessions;
//
//   sessions.Lock()->insert_or_assign(token, session);  // Held to the end of the statement.
//
//   auto held = sessions.Lock();                        // Held to the end of the scope.
//   BOBBIN_RETURN_IF_ERROR(held.Await([](const auto& map) { return map.empty(); }));

#ifndef BOBBIN_CORE_GUARDED_H_
#define BOBBIN_CORE_GUARDED_H_

#include <functional>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/guarded_core.h>
#include <bobbin/core/status.h>

namespace bobbin {

template <typename T>
class Guarded;

// The lock of a Guarded, from where it was had to its end. `T` is const for who only reads.
template <typename T>
class [[nodiscard]] Held {
 public:
  Held(Held&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)),
        value_(other.value_),
        may_have_changed_(other.may_have_changed_) {}
  Held& operator=(Held&& other) noexcept {
    if (this == &other) return *this;
    Unlock();
    core_ = std::exchange(other.core_, nullptr);
    value_ = other.value_;
    may_have_changed_ = other.may_have_changed_;
    return *this;
  }
  ~Held() { Unlock(); }

  // The value. REQUIRES: it holds the lock.
  T* operator->() const {
    CheckHolds();
    return value_;
  }
  T& operator*() const& {
    CheckHolds();
    return *value_;
  }
  // A reference that outlives the lock. Keep the lock in a variable, or use With.
  T& operator*() const&& = delete;

  // Gives the lock up and waits until `predicate(value)` is true; holds it again when it returns.
  // OK means that it is true. REQUIRES: it holds the lock.
  template <typename Predicate>
  requires std::is_invocable_r_v<bool, const Predicate&, const T&>
  [[nodiscard]] absl::Status Await(const Predicate& predicate) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    CheckHolds();
    may_have_changed_ = true;  // Who was woken owes the others a look.
    return core_->Await({.call = &Call<Predicate>, .function = &predicate, .value = value_});
  }

  // The same, until `deadline` at most.
  template <typename Predicate>
  requires std::is_invocable_r_v<bool, const Predicate&, const T&>
  [[nodiscard]] absl::Status AwaitUntil(Deadline deadline, const Predicate& predicate) {
    const DeadlineScope scope(deadline);
    return Await(predicate);
  }

  // Gives the lock up before the end; does nothing if it holds none.
  void Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (core_ == nullptr) return;
    internal::GuardedCore& core = *std::exchange(core_, nullptr);
    if (may_have_changed_) {
      core.UnlockAfterChange();
    } else {
      core.mutex().unlock();
    }
  }

 private:
  friend class Guarded<std::remove_const_t<T>>;
  // REQUIRES: the core's mutex is held.
  Held(internal::GuardedCore& core, T& value) : core_(&core), value_(&value) {}

  template <typename Predicate>
  static bool Call(const void* function, const void* value) noexcept {
    return (*static_cast<const Predicate*>(function))(*static_cast<const T*>(value));
  }
  void CheckHolds() const {
    BOBBIN_CHECK(core_ != nullptr, "a guarded value is used after its lock was given up");
  }

  internal::GuardedCore* core_;  // Null: moved from, or given up.
  T* value_;
  bool may_have_changed_ = !std::is_const_v<T>;
};

template <typename T>
class Guarded {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a Guarded owns its value");

 public:
  // Makes the value from `arguments`.
  template <typename... Arguments>
  requires std::is_constructible_v<T, Arguments...>
  explicit Guarded(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Waits until the caller holds it. REQUIRES: the caller does not hold it.
  Held<T> Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    core_.mutex().lock();
    return Held<T>(core_, value_);
  }
  Held<const T> Lock() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    core_.mutex().lock();
    return Held<const T>(core_, value_);
  }

  // The same, until `deadline` or a request to stop.
  absl::StatusOr<Held<T>> LockUntil(Deadline deadline) {
    BOBBIN_RETURN_IF_ERROR(core_.mutex().LockUntil(deadline));
    return Held<T>(core_, value_);
  }
  absl::StatusOr<Held<const T>> LockUntil(Deadline deadline) const {
    BOBBIN_RETURN_IF_ERROR(core_.mutex().LockUntil(deadline));
    return Held<const T>(core_, value_);
  }

  // Returns `use(value)`, called with the lock held: for a number, or a value to be copied out.
  template <typename Use>
  requires std::is_invocable_v<Use, T&>
  auto With(Use&& use) {
    CheckResult<std::invoke_result_t<Use, T&>>();
    const Held<T> held = Lock();
    return std::invoke(std::forward<Use>(use), *held);
  }
  template <typename Use>
  requires std::is_invocable_v<Use, const T&>
  auto With(Use&& use) const {
    CheckResult<std::invoke_result_t<Use, const T&>>();
    const Held<const T> held = Lock();
    return std::invoke(std::forward<Use>(use), *held);
  }

 private:
  template <typename Result>
  static constexpr void CheckResult() {
    static_assert(!std::is_reference_v<Result>, "a reference would outlive the lock");
  }

  mutable internal::GuardedCore core_;
  T value_;  // Guarded by the core's mutex: Held is the only way to it.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_GUARDED_H_
