// SPDX-License-Identifier: Apache-2.0
//
// Future and Promise: one result that is made in one place and awaited in another; MakePromise
// makes both.
//
// For results that come by a callback or from a thread that nobody owns. A result of a virtual
// thread that its parent waits for needs neither: see TaskGroup. For many values use Channel; for
// no value, and many who wait, Event.
//
//   Called from   virtual, platform and foreign threads. A future by one thread at a time; Set and
//                 TrySet also by several at once, of which one wins.
//   Suspends      Wait, Get, WaitAny, WaitAll and their Until twins, while there is no result.
//   Cancellation  A wait without a result returns CANCELLED or DEADLINE_EXCEEDED; the future is as
//                 before, and may be asked again. A result that is there is returned, also to a
//                 thread that is to stop.
//   Errors        Get: the promise's status; ABORTED when the promise was destroyed without a
//                 result. An exception that was set is rethrown. Set aborts when there is a result
//                 already; TrySet says so.
//   Order         A Set unparks whoever waits, or runs the continuation.
//   Memory        A Set happens before the return of the Get, and before IsReady says true.
//   Lifetime      Both ends may go at any time. A promise that goes without a result breaks its
//                 future's hope (ABORTED); a future that goes without a result sets abandoned(). A
//                 result that nobody takes is destroyed with the second of the two.
//   Cost          A pair: one allocation. Set and Get: a read-modify-write each; a wait adds
//                 a park.
//
// The move constructor of T must be noexcept and must not wait; it may run while a spin lock is
// held. For a reference use std::reference_wrapper.
//
// Example:
//   auto [promise, answer] = MakePromise<Page>();
//   client.Send(request, [promise = std::move(promise)](Page page) mutable {
//     promise.Set(std::move(page));
//   });
//   BOBBIN_ASSIGN_OR_RETURN(Page page, answer.Get());

#ifndef BOBBIN_CORE_FUTURE_H_
#define BOBBIN_CORE_FUTURE_H_

#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/future_state.h>

namespace bobbin {

// What Get returns: StatusOr<T>; for Future<void>, Status.
template <typename T>
using FutureResult = internal::FutureResult<T>;

// The end that the result comes out of.
template <typename T>
class [[nodiscard]] Future {
 public:
  // Holds nothing, until one is assigned.
  Future() = default;
  // For MakePromise and its like: takes over a reference.
  explicit Future(internal::FutureState<T>& state) noexcept : state_(&state) {}
  Future(Future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Future& operator=(Future&& other) noexcept {
    if (this != &other) {
      if (state_ != nullptr) state_->Drop();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  ~Future() {
    if (state_ != nullptr) state_->Drop();
  }

  // Whether there is a result; never suspends. REQUIRES, like all below: it holds something.
  [[nodiscard]] bool IsReady() const { return state().IsReady(); }

  // Waits until there is a result, and leaves it there.
  [[nodiscard]] absl::Status Wait() { return state().Await(); }

  // The same, until `deadline` at most.
  [[nodiscard]] absl::Status WaitUntil(Deadline deadline) {
    if (IsReady()) return absl::OkStatus();
    const DeadlineScope scope(deadline);
    return Wait();
  }

  // Waits until there is a result and takes it, or rethrows the exception. The future then holds
  // nothing; it is as before if the wait was cut short.
  [[nodiscard]] FutureResult<T> Get() {
    if (!IsReady()) {
      if (absl::Status waited = Wait(); !waited.ok()) return waited;
    }
    internal::FutureState<T>& taken = *std::exchange(state_, nullptr);
    std::exception_ptr exception = taken.TakeException();
    FutureResult<T> result = taken.TakeResult();
    taken.Release();
    if (__builtin_expect(exception != nullptr, 0)) std::rethrow_exception(std::move(exception));
    return result;
  }

  // The same, until `deadline` at most.
  [[nodiscard]] FutureResult<T> GetUntil(Deadline deadline) {
    if (absl::Status waited = WaitUntil(deadline); !waited.ok()) return waited;
    return Get();
  }

  // Has `function` called with the result, on the thread that sets it, or here and now if it is
  // there already; returns a future of what `function` returns. A function of StatusOr<T> (Status,
  // if T is void) is called with any result; one of T (of nothing) with a value, while an error
  // passes it by. So does an exception. It must not wait: it runs under a NoSuspendScope. What
  // takes longer belongs in a virtual thread that says Get. Dropping the returned future sets
  // abandoned() of the promise; the function runs all the same.
  template <typename F>
  auto Then(F&& function) && {
    using Function = std::decay_t<F>;
    using U = internal::ChainedValue<T, Function>;
    auto chained = std::make_unique<internal::ChainedState<T, Function, U>>(
        state(), Function(std::forward<F>(function)));
    internal::FutureState<T>& source = *std::exchange(state_, nullptr);
    Future<U> result(*chained);
    source.Attach(*chained.release());
    return result;
  }

  // Of a task that was given to an executor: withdraws it, if its body has not begun. True: it
  // never runs, and the result is CANCELLED. False: it runs, or has run; or the result is a
  // promise's. Never suspends.
  bool TryCancel() { return state().TryCancel(); }

  // Whether it holds something: not after Get, Then, or a move from it.
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend struct internal::FutureAccess;

  internal::FutureState<T>& state() const {
    BOBBIN_CHECK(state_ != nullptr, "a future is used that holds nothing");
    return *state_;
  }

  internal::FutureState<T>* state_ = nullptr;
};

// The end that the result goes into.
template <typename T>
class Promise {
 public:
  // Holds nothing, until one is assigned.
  Promise() = default;
  // For MakePromise: takes over a reference.
  explicit Promise(internal::FutureState<T>& state) noexcept : state_(&state) {}
  Promise(Promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Promise& operator=(Promise&& other) noexcept {
    if (this != &other) {
      if (state_ != nullptr) Leave();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  ~Promise() {
    if (state_ != nullptr) Leave();
  }

  // Sets the result: a value, or the status that says why there is none. REQUIRES, like all below:
  // it holds something; and there is no result yet.
  void Set(FutureResult<T> result) {
    BOBBIN_CHECK(TrySet(std::move(result)), "a promise is set that has been set before");
  }
  void Set() requires std::is_void_v<T> { Set(absl::OkStatus()); }

  // The same where others may be faster: false, and `result` is dropped, if there is a result.
  [[nodiscard]] bool TrySet(FutureResult<T> result) { return state().TrySet(std::move(result)); }

  // Sets an exception, for Get to rethrow. REQUIRES: there is no result yet.
  void SetException(std::exception_ptr exception) {
    BOBBIN_CHECK(exception != nullptr, "a promise is given an exception that is none");
    BOBBIN_CHECK(state().TrySetException(std::move(exception)),
                 "a promise is set that has been set before");
  }

  // Is set when the future was dropped before there was a result: nobody needs it any more. Lives
  // as long as the promise.
  Event& abandoned() const { return state().abandoned(); }

  // Whether it holds something: not after a move from it.
  explicit operator bool() const { return state_ != nullptr; }

 private:
  internal::FutureState<T>& state() const {
    BOBBIN_CHECK(state_ != nullptr, "a promise is used that holds nothing");
    return *state_;
  }
  void Leave() noexcept {
    if (!state_->IsReady()) static_cast<void>(state_->TrySet(internal::BrokenPromise()));
    state_->Release();
  }

  internal::FutureState<T>* state_ = nullptr;
};

// Both ends of one result.
template <typename T>
struct PromiseEnds {
  Promise<T> promise;
  Future<T> future;
};

template <typename T>
PromiseEnds<T> MakePromise() {
  internal::FutureState<T>& state = *std::make_unique<internal::FutureState<T>>().release();
  return {Promise<T>(state), Future<T>(state)};
}

// Waits until one of `futures` has a result and returns its index; of several, the first. Those
// that hold nothing do not count. REQUIRES: one of them holds something.
template <std::ranges::random_access_range Futures>
[[nodiscard]] absl::StatusOr<size_t> WaitAny(Futures&& futures) {
  const auto first = std::ranges::begin(futures);
  return internal::AwaitAny(
      static_cast<size_t>(std::ranges::distance(futures)), [first](size_t index) {
        return internal::FutureAccess::StateOf(
            first[static_cast<std::iter_difference_t<decltype(first)>>(index)]);
      });
}
template <typename... T>
[[nodiscard]] absl::StatusOr<size_t> WaitAny(Future<T>&... futures) {
  internal::FutureStateBase* const states[] = {internal::FutureAccess::StateOf(futures)...};
  return internal::AwaitAny(sizeof...(T), [&states](size_t index) { return states[index]; });
}

// Waits until all `futures` have their results. Those that hold nothing do not count.
template <std::ranges::input_range Futures>
[[nodiscard]] absl::Status WaitAll(Futures&& futures) {
  for (auto& future : futures) {
    if (!future) continue;
    if (absl::Status waited = future.Wait(); !waited.ok()) return waited;
  }
  return absl::OkStatus();
}
template <typename... T>
[[nodiscard]] absl::Status WaitAll(Future<T>&... futures) {
  absl::Status waited;
  static_cast<void>(((!futures || (waited = futures.Wait()).ok()) && ...));
  return waited;
}

}  // namespace bobbin

#endif  // BOBBIN_CORE_FUTURE_H_
