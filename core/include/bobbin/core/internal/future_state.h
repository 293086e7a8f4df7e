// SPDX-License-Identifier: Apache-2.0
//
// FutureState: what a promise and its future share - the result, who waits for it, what runs with
// it.
//
// States (one word with a spin lock in it)
//
//   pending   no result; the reader may wait here (waiter_), or have left a continuation
//   ready     the result is there and does not change; nobody waits
//
// Transitions
//
//   pending -> ready   Publish   the first who sets a result, with the lock held since BeginSet
//
// Why no wake-up is lost. A reader looks at the word and leaves its waiter or its continuation
// under the lock under which the result is published. Either it sees the result, or Publish sees
// it.
//
// Why one field is enough. A future has one owner, who does one thing at a time: at most one thread
// waits for a state, or one continuation. A thread that waits for several states leaves the same
// waiter in each; the first Publish that wins its state word dispatches it, and it takes the waiter
// out of the others, under their locks, before it goes on.
//
// Why nobody touches a state that is gone. It is counted: one reference is the promise's, one the
// future's. A continuation takes over the future's reference to the state it was left in, and is
// itself owned once by that state and once by the future it feeds. Whoever sets a result keeps its
// own reference meanwhile, so that the reader may let go as soon as it sees the result.
//
//   Called from   any thread; the reader's side by one at a time.
//   Suspends      Await and AwaitAny. Abandon may, where a task is behind it.
//   Cost          setting and taking: one read-modify-write each, and one for each reference.

#ifndef BOBBIN_CORE_INTERNAL_FUTURE_STATE_H_
#define BOBBIN_CORE_INTERNAL_FUTURE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>
#include <bobbin/core/no_suspend.h>

namespace bobbin {
template <typename T>
class Future;
}  // namespace bobbin

namespace bobbin::internal {

// What a future of T gives: a T as StatusOr<T>, nothing as Status.
template <typename T>
struct FutureResultOf {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a future carries a value, or nothing");
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "a result must not get lost on its way: its move constructor must be noexcept");
  using type = absl::StatusOr<T>;
};
template <>
struct FutureResultOf<void> {
  using type = absl::Status;
};
template <typename T>
using FutureResult = typename FutureResultOf<T>::type;

// What a future carries that is fed by a function which returns R.
template <typename R>
struct FutureValueOf {
  using type = std::remove_cv_t<R>;
};
template <>
struct FutureValueOf<absl::Status> {
  using type = void;
};
template <typename T>
struct FutureValueOf<absl::StatusOr<T>> {
  using type = T;
};
template <typename R>
using FutureValue = typename FutureValueOf<R>::type;

// Moves `from` into `to`, also where T can be constructed but not assigned.
inline void MoveResult(absl::Status&& from, absl::Status& to) noexcept { to = std::move(from); }
template <typename T>
void MoveResult(absl::StatusOr<T>&& from, absl::StatusOr<T>& to) noexcept {
  if (from.ok()) {
    to.emplace(*std::move(from));
  } else {
    to = std::move(from).status();
  }
}

inline const absl::Status& StatusOf(const absl::Status& result) noexcept { return result; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) noexcept {
  return result.status();
}

// Calls `function`; returns nothing as OK.
template <typename F, typename... Arguments>
auto CallForResult(F&& function, Arguments&&... arguments)
    -> FutureResult<FutureValue<std::invoke_result_t<F, Arguments...>>> {
  if constexpr (std::is_void_v<std::invoke_result_t<F, Arguments...>>) {
    std::forward<F>(function)(std::forward<Arguments>(arguments)...);
    return absl::OkStatus();
  } else {
    return std::forward<F>(function)(std::forward<Arguments>(arguments)...);
  }
}

// What a future carries that is fed by an F which is called with a result of T; or, if it cannot
// be, with a T.
template <typename T, typename F>
constexpr auto ChainedResultOf() {
  if constexpr (std::is_invocable_v<F&, FutureResult<T>>) {
    return std::type_identity<std::invoke_result_t<F&, FutureResult<T>>>();
  } else if constexpr (std::is_void_v<T>) {
    return std::type_identity<std::invoke_result_t<F&>>();
  } else {
    return std::type_identity<std::invoke_result_t<F&, T>>();
  }
}
template <typename T, typename F>
using ChainedValue = FutureValue<typename decltype(ChainedResultOf<T, F>())::type>;

// What runs when a state becomes ready.
class Continuation {
 public:
  // Once, on the thread that has published the result, which owns nothing of it afterwards. Returns
  // what is to run next, so that a long chain does not nest.
  virtual Continuation* Run() noexcept = 0;

 protected:
  ~Continuation() = default;
};

// What does not depend on the type of the result.
class FutureStateBase {
 public:
  FutureStateBase(const FutureStateBase&) = delete;
  FutureStateBase& operator=(const FutureStateBase&) = delete;
  virtual ~FutureStateBase() = default;  // For Release.

  bool IsReady() const noexcept { return (word_.Load() & kReady) != 0; }

  void AddReference() noexcept {
    // relaxed: the caller has a reference, so the count is not zero and orders nothing.
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() noexcept {
    // What others did with it comes before its end: the acquires pair with the release. Who finds
    // that the last reference is its own need not count down: nobody else can count up.
    if (references_.load(std::memory_order_acquire) == 1 ||  // Pairs with the release below.
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {  // Pairs with itself.
      const std::unique_ptr<FutureStateBase> last(this);
    }
  }

  // --- The reader's side.

  // Waits until it is ready.
  absl::Status Await();
  // Leaves `continuation` to be run, or runs it at once.
  void Attach(Continuation& continuation) noexcept;
  // The reader goes away without a result, or without having taken it: tells the producer and gives
  // the reference up.
  void Drop() noexcept;
  // Withdraws what is to make the result, if that has not begun: true, and the result is CANCELLED.
  virtual bool TryCancel() noexcept { return false; }

  // For waits in several places: leaves `waiter`, whose wait has begun; false if it is ready.
  [[nodiscard]] bool Enrol(Waiter& waiter) noexcept;
  // Takes out what Enrol has left.
  void Withdraw() noexcept;

  // --- For Select, and for what derives from it and has fields of its own to guard.

  void Lock() noexcept { word_.Lock(); }
  void Unlock() noexcept { word_.Unlock(); }
  // Enrol, with the lock held. REQUIRES: not ready.
  void EnrolLocked(Waiter& waiter) noexcept {
    BOBBIN_CHECK(waiter_ == nullptr, "a future has two who wait for it");
    waiter_ = &waiter;
  }

  // --- The producer's side.

  // Set when the reader has gone away without a result.
  Event& abandoned() noexcept { return abandoned_; }

 protected:
  FutureStateBase() = default;

  // Tells the producer that nobody reads the result, on the thread that drops the future. Returns
  // the state, with a reference, whose result this one is made of; or null. What owns a task ends
  // it here.
  virtual FutureStateBase* Abandon() noexcept {
    abandoned_.Set();
    return nullptr;
  }
  // The same where the result was there, and has not been taken.
  virtual void DropUnread() noexcept {}

  // Takes the lock for the one who sets the result; false if there is one.
  [[nodiscard]] bool BeginSet() noexcept {
    const uint32_t word = word_.Lock();
    if (__builtin_expect((word & kReady) == 0, 1)) return true;
    word_.Unlock(word);
    return false;
  }
  // Whether a function waits for the result, which Publish returns. REQUIRES: the lock.
  bool has_continuation() const noexcept { return continuation_ != nullptr; }
  // Makes the result seen, gives up the lock, unparks the reader. Returns what is to run next.
  Continuation* Publish() noexcept {
    if (waiter_ != nullptr || continuation_ != nullptr) return PublishToReader();
    word_.Unlock(kReady);
    return nullptr;
  }
  // The same for a producer that has no more to do with it: gives its reference up, too. REQUIRES:
  // the other one is the reader's, who is yet to come for the result.
  void PublishAndRelease() noexcept {
    BOBBIN_DCHECK(continuation_ == nullptr && references_.load() == 2,
                  "somebody else than its reader needs a future's state");
    // relaxed: nobody else counts as long as the lock is held; Publish publishes it.
    references_.store(1, std::memory_order_relaxed);
    static_cast<void>(Publish());
  }
  static void RunAll(Continuation* first) noexcept {
    while (first != nullptr) first = first->Run();
  }

 private:
  static constexpr uint32_t kReady = 2;  // Beside the lock's bit.

  Continuation* PublishToReader() noexcept;

  WordLock<uint32_t, 1> word_{0};
  Atomic<uint32_t> references_{2};  // Changed by whoever comes or goes; see above.
  Waiter* waiter_ = nullptr;        // Guarded by the lock in word_, like the next.
  Continuation* continuation_ = nullptr;
  Event abandoned_;
};

// Waits until one of the states is ready and returns its index. `state_of` may return null for
// those that do not count.
absl::StatusOr<size_t> AwaitAny(size_t count, absl::FunctionRef<FutureStateBase*(size_t)> state_of);

template <typename T>
class FutureState : public FutureStateBase {
 public:
  using Result = FutureResult<T>;

  FutureState() = default;

  // Sets the result; false, and `result` is untouched, if there is one.
  [[nodiscard]] bool TrySet(Result&& result) noexcept {
    if (!BeginSet()) return false;
    result_.emplace(std::move(result));
    RunAll(Publish());
    return true;
  }
  [[nodiscard]] bool TrySetException(std::exception_ptr exception) noexcept {
    if (!BeginSet()) return false;
    exception_ = std::move(exception);
    RunAll(Publish());
    return true;
  }

  // The result, taken, of no meaning beside an exception. REQUIRES: IsReady(), and only once.
  Result TakeResult() noexcept {
    if (__builtin_expect(!result_.has_value(), 0)) return Result();
    return *std::move(result_);
  }
  std::exception_ptr TakeException() noexcept { return std::exchange(exception_, nullptr); }

 protected:
  // Written before it is ready; the reader's from then on.
  std::optional<Result> result_;
  std::exception_ptr exception_;
};

// What a future gives whose promise was destroyed without a result.
absl::Status BrokenPromise();

// The state of a future; null if it holds nothing.
struct FutureAccess {
  template <typename T>
  static FutureState<T>* StateOf(const Future<T>& future) noexcept {
    return future.state_;
  }
  // The same, with the reader's reference; the future then holds nothing.
  template <typename T>
  static FutureState<T>* Take(Future<T>& future) noexcept {
    return std::exchange(future.state_, nullptr);
  }
};

// The state of a future that is fed by a function of another future's result.
template <typename T, typename F, typename U>
class ChainedState final : public FutureState<U>, public Continuation {
 public:
  // Takes over the reader's reference to `source`.
  ChainedState(FutureState<T>& source, F&& function)
      : source_(&source), function_(std::move(function)) {}

  Continuation* Run() noexcept override {
    // From here on Abandon has nothing to tell.
    this->Lock();
    FutureState<T>* const source = std::exchange(source_, nullptr);
    this->Unlock();
    FutureResult<T> input = source->TakeResult();
    std::exception_ptr exception = source->TakeException();
    source->Release();

    FutureResult<U> output{};
    if (exception == nullptr) {
      const NoSuspendScope scope;
      const ContextSwap context(context_.node());
      exception = CaptureException([&] { Apply(std::move(input), output); });
      function_.reset();
    }
    const bool is_first = this->BeginSet();
    BOBBIN_CHECK(is_first, "only its function feeds a chained future");
    this->result_.emplace(std::move(output));
    this->exception_ = std::move(exception);
    Continuation* const next = this->Publish();
    this->Release();  // What the source had.
    return next;
  }

  bool TryCancel() noexcept override {
    FutureStateBase* const source = Abandon();
    if (source == nullptr) return false;
    const bool is_cancelled = source->TryCancel();
    source->Release();
    return is_cancelled;
  }

 private:
  FutureStateBase* Abandon() noexcept override {
    this->Lock();
    FutureState<T>* const source = source_;
    if (source != nullptr) source->AddReference();
    this->Unlock();
    return source;
  }

  void Apply(FutureResult<T>&& input, FutureResult<U>& output) {
    if constexpr (std::is_invocable_v<F&, FutureResult<T>>) {
      MoveResult(CallForResult(*function_, std::move(input)), output);
    } else if constexpr (std::is_void_v<T>) {
      if (input.ok()) {
        MoveResult(CallForResult(*function_), output);
      } else {
        output = std::move(input);
      }
    } else {
      if (input.ok()) {
        MoveResult(CallForResult(*function_, *std::move(input)), output);
      } else {
        output = std::move(input).status();
      }
    }
  }

  FutureState<T>* source_;  // Guarded by this state's lock; null once it has run.
  std::optional<F> function_;
  const SharedContext context_;  // Where the function was given.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_FUTURE_STATE_H_
