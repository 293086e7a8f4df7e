// SPDX-License-Identifier: Apache-2.0
//
// AsyncState: the state of a future that a task feeds, the task, and its body, all in one block.
//
//   Called from   SubmitForFuture, SubmitForgotten: the submitter. The rest as in async_task.h.
//   Suspends      as in async_task.h.
//   Cost          one allocation, from what the carrier keeps of such blocks.

#ifndef BOBBIN_SCHED_INTERNAL_ASYNC_STATE_H_
#define BOBBIN_SCHED_INTERNAL_ASYNC_STATE_H_

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include <bobbin/core/future.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/future_state.h>
#include <bobbin/sched/internal/async_task.h>

namespace bobbin::internal {

// --- What a body may be, and what it gives.

// A body that takes a stop token first is given its executor's.
template <typename F, typename... Arguments>
concept TakesStopToken = std::is_invocable_v<F&, std::stop_token, Arguments&...>;

template <typename F, typename... Arguments>
constexpr auto BodyResultOf() {
  if constexpr (TakesStopToken<F, Arguments...>) {
    return std::type_identity<std::invoke_result_t<F&, std::stop_token, Arguments&...>>();
  } else {
    static_assert(std::is_invocable_v<F&, Arguments&...>,
                  "Async: the body cannot be called with these arguments");
    return std::type_identity<std::invoke_result_t<F&, Arguments&...>>();
  }
}
template <typename F, typename... Arguments>
using BodyResult = typename decltype(BodyResultOf<F, Arguments...>())::type;

template <typename R>
inline constexpr bool kIsFuture = false;
template <typename T>
inline constexpr bool kIsFuture<Future<T>> = true;

// What the future of a body that returns R carries: of a future, what that carries.
template <typename R>
struct AsyncValueOf : FutureValueOf<R> {};
template <typename T>
struct AsyncValueOf<Future<T>> {
  using type = T;
};
template <typename F, typename... Arguments>
using AsyncValue = typename AsyncValueOf<BodyResult<F, Arguments...>>::type;

// Whether a value of type D, kept for a body, would refer to something of its caller's.
template <typename D>
inline constexpr bool kBorrows = (std::is_pointer_v<D> &&
                                  !std::is_function_v<std::remove_pointer_t<D>> &&
                                  !std::is_same_v<D, const char*>) ||
                                 (std::ranges::view<D> && std::ranges::borrowed_range<D>);
template <typename T>
inline constexpr bool kBorrows<std::reference_wrapper<T>> = true;
template <typename T>
inline constexpr bool kBorrows<std::initializer_list<T>> = true;
template <typename S>
inline constexpr bool kBorrows<absl::FunctionRef<S>> = true;

// --- The state.

// What a future says that was to follow one which holds nothing.
absl::Status EmptyFuture();

// Memory for a state, from the calling thread's carrier if it has one.
void* NewStateBlock(size_t bytes);
void DeleteStateBlock(void* block, size_t bytes) noexcept;

template <typename T, typename F, typename... Arguments>
class AsyncState final : public FutureState<T>, public AsyncTask {
 public:
  using Returned = BodyResult<F, Arguments...>;

  template <typename G, typename... A>
  AsyncState(ExecutorCore& executor, const TaskOptions* options, G&& body, A&&... arguments)
      : AsyncTask(executor, options),
        body_(std::in_place, std::forward<G>(body), std::forward<A>(arguments)...) {}

  void FailUnbegun(absl::Status reason) noexcept override {
    body_.reset();
    static_cast<void>(this->TrySet(FutureResult<T>(std::move(reason))));
  }
  void FailRunning(absl::Status reason) noexcept override {
    static_cast<void>(this->TrySet(FutureResult<T>(std::move(reason))));
  }
  void AddOwner() noexcept override { this->AddReference(); }
  void GiveUp() noexcept override { this->Release(); }
  bool TryCancel() noexcept override { return Withdraw(); }
  // Nobody will ask for the result. REQUIRES: it has not been submitted.
  void Forget() noexcept { is_forgotten_ = true; }

  static void* operator new(size_t bytes) { return NewStateBlock(bytes); }
  static void operator delete(void* block, size_t bytes) noexcept {
    DeleteStateBlock(block, bytes);
  }
  // With a body that has to lie where few things have to.
  static void* operator new(size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* block, size_t, std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
  }

 private:
  // What is kept until the body has been counted: a result, or the future of one.
  using Kept = std::conditional_t<kIsFuture<Returned>, Future<T>, FutureResult<T>>;

  // Makes the result of another future that of this one.
  class Relay final : public Continuation {
   public:
    Relay(FutureState<T>& source, AsyncState& target) : source_(source), target_(target) {}
    Continuation* Run() noexcept override {
      const std::unique_ptr<Relay> self(this);
      FutureResult<T> result = source_.TakeResult();
      std::exception_ptr exception = source_.TakeException();
      source_.Release();
      Continuation* const next = target_.Settle(std::move(result), std::move(exception));
      target_.Release();
      return next;
    }

   private:
    FutureState<T>& source_;
    AsyncState& target_;
  };

  bool Execute() noexcept override {
    if (may_run_again()) kept_.reset();
    thrown_ = CaptureException([this] {
      if constexpr (kIsFuture<Returned>) {
        kept_.emplace(Call());
      } else {
        kept_.emplace(CallForResult([this]() -> Returned { return Call(); }));
      }
    });
    if (!may_run_again()) body_.reset();
    if (__builtin_expect(thrown_ != nullptr, 0)) return false;
    if constexpr (kIsFuture<Returned>) {
      return true;
    } else {
      return StatusOf(*kept_).ok();
    }
  }
  Returned Call() {
    if constexpr (TakesStopToken<F, Arguments...>) {
      return std::apply(
          [stop = StopToken()](F& body, Arguments&... arguments) -> Returned {
            return std::invoke(body, stop, arguments...);
          },
          *body_);
    } else {
      return std::apply(
          [](F& body, Arguments&... arguments) -> Returned {
            return std::invoke(body, arguments...);
          },
          *body_);
    }
  }
  absl::Status LastError() const noexcept override {
    if constexpr (kIsFuture<Returned>) {
      return error_;
    } else {
      return kept_.has_value() ? StatusOf(*kept_) : error_;
    }
  }
  std::exception_ptr LastException() const noexcept override { return thrown_; }
  void KeepError(absl::Status error) noexcept override {
    kept_.reset();
    error_ = std::move(error);
  }
  void EndBody() noexcept override { body_.reset(); }

  void Deliver() noexcept override {
    if constexpr (kIsFuture<Returned>) {
      if (kept_.has_value() && thrown_ == nullptr) {
        Follow(*std::move(kept_));
        return;
      }
    } else if (kept_.has_value()) {
      SettleAndGiveUp(*std::move(kept_), nullptr);
      return;
    }
    if (thrown_ != nullptr) return SettleAndGiveUp(FutureResult<T>(), std::move(thrown_));
    SettleAndGiveUp(std::move(error_), nullptr);
  }

  // The result is to be that of `other`, whenever that comes. The relay has the path's reference.
  void Follow(Future<T> other) noexcept {
    KeepSink();
    FutureState<T>* const source = FutureAccess::Take(other);
    if (source == nullptr) return SettleAndGiveUp(EmptyFuture(), nullptr);
    source->Attach(*std::make_unique<Relay>(*source, *this).release());
  }

  // Makes it the result, unless the task was abandoned. Returns what is to run next.
  Continuation* Settle(FutureResult<T>&& result, std::exception_ptr exception) noexcept {
    if (!this->BeginSet()) return nullptr;
    return SettleLocked(std::move(result), std::move(exception));
  }
  // The same for the task's thread, which has no more to do with it.
  void SettleAndGiveUp(FutureResult<T>&& result, std::exception_ptr exception) noexcept {
    if (this->BeginSet()) {
      // The reader cannot go as long as the lock is held, and nobody else has a reference: those
      // who end tasks from elsewhere have let go of this one, or it would not be its own to end.
      if (__builtin_expect(!is_forgotten_ && !this->has_continuation(), 1)) {
        Fill(std::move(result), std::move(exception));
        return this->PublishAndRelease();
      }
      this->RunAll(SettleLocked(std::move(result), std::move(exception)));
    }
    this->Release();
  }
  Continuation* SettleLocked(FutureResult<T>&& result, std::exception_ptr exception) noexcept {
    const bool is_unheard = is_forgotten_ && !this->has_continuation() &&
                            (exception != nullptr || !StatusOf(result).ok());
    const absl::Status status = is_unheard ? StatusOf(result) : absl::OkStatus();
    Fill(std::move(result), exception);
    is_passed_on_ = this->has_continuation();
    Continuation* const next = this->Publish();
    if (__builtin_expect(is_unheard, 0)) ReportUncaught(status, std::move(exception));
    return next;
  }
  void Fill(FutureResult<T>&& result, std::exception_ptr exception) noexcept {
    is_failure_ = exception != nullptr || !StatusOf(result).ok();
    this->result_.emplace(std::move(result));
    this->exception_ = std::move(exception);
  }

  FutureStateBase* Abandon() noexcept override {
    this->Lock();
    const bool is_ready = this->IsReady();
    if (!is_ready && !this->has_continuation()) is_forgotten_ = true;
    const bool is_unread = is_ready && !is_passed_on_;
    this->Unlock();
    if (is_unread) DropUnread();
    return nullptr;
  }
  void DropUnread() noexcept override {
    if (is_failure_) ReportUncaught(StatusOf(*this->result_), this->exception_);
  }

  std::optional<std::tuple<F, Arguments...>> body_;
  std::optional<Kept> kept_;
  std::exception_ptr thrown_;
  absl::Status error_;
  bool is_forgotten_ = false;  // Nobody will ask for the result. Guarded by the state's lock.
  bool is_passed_on_ = false;  // A function takes the result. Guarded like the one above.
  bool is_failure_ = false;    // Written before it is ready: the body's own, and not a drop.
};

// Given to `executor`; if that refuses it, its future says why. Below, no options are the default.
absl::Status SubmitTask(ExecutorCore& executor, AsyncTask& task) noexcept;

template <typename F, typename... Arguments>
auto SubmitForFuture(ExecutorCore& executor, const TaskOptions* options, F&& body,
                     Arguments&&... arguments) {
  using T = AsyncValue<std::decay_t<F>, std::decay_t<Arguments>...>;
  using State = AsyncState<T, std::decay_t<F>, std::decay_t<Arguments>...>;
  State& state = *std::make_unique<State>(executor, options, std::forward<F>(body),
                                          std::forward<Arguments>(arguments)...)
                      .release();
  Future<T> future(state);
  static_cast<void>(SubmitTask(executor, state));
  return future;
}

template <typename F>
absl::Status SubmitForgotten(ExecutorCore& executor, const TaskOptions* options, F&& body) {
  using State = AsyncState<AsyncValue<std::decay_t<F>>, std::decay_t<F>>;
  State& state = *std::make_unique<State>(executor, options, std::forward<F>(body)).release();
  state.Forget();
  absl::Status submitted = SubmitTask(executor, state);
  state.Release();
  return submitted;
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_ASYNC_STATE_H_
