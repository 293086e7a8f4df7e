// SPDX-License-Identifier: Apache-2.0
//
// Once: a body that runs until it has succeeded, and then never again.
//
// For what is expensive and perhaps never needed: a table, a connection, a parsed file. The first
// caller runs its body; those who come meanwhile wait. A body that fails, by a status or by an
// exception, has not run: the one who waits longest tries next, with a body of its own.
//
//   Called from   virtual, platform and foreign threads. The body may wait.
//   Suspends      Call, while another thread is in its body.
//   Cancellation  A Call that would have to wait returns CANCELLED or DEADLINE_EXCEEDED. A thread
//                 that is to stop runs its body all the same, if it is its turn, and gets OK from
//                 one that is done.
//   Errors        Call returns its own body's status and passes on its own body's exception; the
//                 failures of others it does not see.
//   Order         After a failure the one who waits longest tries next.
//   Memory        The body that succeeded happens before the return of every Call that says OK, and
//                 before every IsDone that says true.
//   Lifetime      May be destroyed by a thread that has seen it done, if no other thread is in a
//                 Call: the end of the body does not touch it once others can see it done.
//                 Destroying it while a body runs aborts.
//   Cost          When it is done: a load. The first Call: two compare-exchanges.
//
// A body that calls its own Once aborts, for it would wait for itself.
//
// Example:
//   BOBBIN_RETURN_IF_ERROR(loaded_.Call([this] { return LoadTable(); }));
//   return table_.find(key);

#ifndef BOBBIN_CORE_ONCE_H_
#define BOBBIN_CORE_ONCE_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>
#include <bobbin/core/status.h>

namespace bobbin {

class Once {
 public:
  Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once();

  // Whether a body has succeeded; never suspends.
  [[nodiscard]] bool IsDone() const { return (word_.Load() & kDone) != 0; }

  // Runs `body`, which returns nothing or a status, unless one has succeeded already; waits while
  // another thread's runs. OK means that one has succeeded.
  template <typename F>
  requires std::is_void_v<std::invoke_result_t<F&>> ||
      std::is_convertible_v<std::invoke_result_t<F&>, absl::Status>
  [[nodiscard]] absl::Status Call(F&& body) {
    if (__builtin_expect(IsDone(), 1)) return absl::OkStatus();
    BOBBIN_ASSIGN_OR_RETURN(const Turn turn, AwaitTurn());
    if (turn == Turn::kDone) return absl::OkStatus();
    Attempt attempt(*this);
    absl::Status status;
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      body();
    } else {
      status = body();
    }
    if (status.ok()) attempt.Succeed();
    return status;
  }

 private:
  // The word: the address of the thread whose body runs, or zero; and three bits.
  using Word = uintptr_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr Word kDone = 4;

  // What a Call finds when it need not wait any longer.
  enum class Turn : uint8_t { kMine, kDone };

  // The stretch in which the calling thread's body runs. However it ends, somebody is told.
  class Attempt {
   public:
    explicit Attempt(Once& once) : once_(once) {}
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt() {
      if (!has_succeeded_) once_.HandOver();
    }
    void Succeed() {
      has_succeeded_ = true;
      once_.Finish();
    }

   private:
    Once& once_;
    bool has_succeeded_ = false;
  };

  absl::StatusOr<Turn> AwaitTurn();
  void Finish() noexcept;
  void HandOver() noexcept;

  // States: 0; a thread's address, perhaps with kHasWaiters; kDone. Only a running body has
  // waiters: Finish takes all of them out, and HandOver makes the first one the next to run.
  internal::WordLock<Word, kLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_. Waiter::amount: the Turn given.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_ONCE_H_
