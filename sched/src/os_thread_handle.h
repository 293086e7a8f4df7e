// SPDX-License-Identifier: Apache-2.0
//
// OsThreadHandle: an OS thread that the project starts - a carrier, a pool's thread, the monitor.
//
// All of them have a name that tools show, and block the signals that a process handles elsewhere,
// so that a handler of the user's never runs on a virtual thread's stack. What a fault raises stays
// unblocked, and SIGPROF for profilers.
//
//   Called from   any thread; Join: one that may block.
//   Suspends      Join blocks the OS thread.
//   Errors        The constructor aborts when the system gives no thread; TryStart returns that.
//   Lifetime      It must have been joined or detached before it is destroyed.
//   Cost          about 35 us to start.

#ifndef BOBBIN_SCHED_SRC_OS_THREAD_HANDLE_H_
#define BOBBIN_SCHED_SRC_OS_THREAD_HANDLE_H_

#include <pthread.h>

#include <optional>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>

namespace bobbin::internal {

class OsThreadHandle {
 public:
  // Holds nothing.
  OsThreadHandle() = default;
  // Starts a thread that runs `body`; aborts when the system refuses.
  OsThreadHandle(std::string_view name, absl::AnyInvocable<void() &&> body);
  // RESOURCE_EXHAUSTED when the system gives no thread.
  static absl::StatusOr<OsThreadHandle> TryStart(std::string_view name,
                                                 absl::AnyInvocable<void() &&> body);
  OsThreadHandle(OsThreadHandle&& other) noexcept
      : thread_(std::exchange(other.thread_, std::nullopt)) {}
  OsThreadHandle& operator=(OsThreadHandle&& other) noexcept {
    CheckNotForgotten();
    thread_ = std::exchange(other.thread_, std::nullopt);
    return *this;
  }
  ~OsThreadHandle() { CheckNotForgotten(); }

  bool is_joinable() const noexcept { return thread_.has_value(); }
  void Join();
  // Leaves it to itself: for one that would not end.
  void Detach();
  // Ties it to the `index`-th CPU, modulo their number, of those this process may use.
  void PinToUsableCpu(int index);

 private:
  void CheckNotForgotten() const {
    BOBBIN_CHECK(!is_joinable(), "an OS thread is forgotten before it was joined");
  }

  std::optional<pthread_t> thread_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_OS_THREAD_HANDLE_H_
