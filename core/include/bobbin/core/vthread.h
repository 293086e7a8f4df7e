// SPDX-License-Identifier: Apache-2.0
//
// VirtualThread: the owning handle of a virtual thread. Made by Spawn (bobbin/sched/spawn.h).
//
// The destructor asks the thread to stop and waits for its end, so nothing outlives its scope by
// accident. Detach is the loud way out.
//
//   Called from   any thread; one at a time.
//   Suspends      Join, until the thread has ended; the destructor likewise.
//   Cancellation  Join returns CANCELLED or DEADLINE_EXCEEDED when the *caller* is to stop: the
//                 thread goes on, and is_joinable() stays true. The destructor ignores the
//                 caller's.
//   Errors        Join returns the body's status and rethrows the body's exception. The destructor
//                 drops both. An exception out of a detached thread ends the process, and the
//                 report names the thread.
//   Cost          Join of an ended thread: a load. Of a running one: a park.
//
// Example:
//   bobbin::VirtualThread heart = bobbin::Spawn({.name = "heart"}, [&] { return Beat(sink); });
//   heart.Cancel();                          // A request, seen at the next wait.
//   absl::Status end = heart.Join();         // CANCELLED: it stopped because it was asked to.

#ifndef BOBBIN_CORE_VTHREAD_H_
#define BOBBIN_CORE_VTHREAD_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/internal/task.h>

namespace bobbin {

class [[nodiscard]] VirtualThread {
 public:
  // Holds nothing.
  VirtualThread() = default;
  // For Spawn: takes over a launched task.
  explicit VirtualThread(internal::Task& task) : task_(&task) {}
  VirtualThread(VirtualThread&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  VirtualThread& operator=(VirtualThread&& other) noexcept;
  ~VirtualThread() {
    if (task_ != nullptr) CancelAndJoin();
  }

  // Waits for the end; returns or rethrows what the body ended with. Afterwards the handle is
  // empty. REQUIRES: is_joinable(), and the caller is not the thread itself.
  absl::Status Join();

  // Asks the thread to stop: its waits answer CANCELLED from now on. REQUIRES: is_joinable().
  void Cancel();

  // Lets the thread live on its own; the runtime still waits for it at its end. REQUIRES:
  // is_joinable().
  void Detach() &&;

  // Whether it holds a thread that has not been joined.
  bool is_joinable() const { return task_ != nullptr; }
  // Whether the body has returned. REQUIRES: is_joinable().
  bool IsDone() const;
  // Unique in its runtime. REQUIRES: is_joinable().
  uint64_t Id() const;

 private:
  void CancelAndJoin() noexcept;

  internal::Task* task_ = nullptr;
};

namespace this_vthread {

// The calling virtual thread's number and name; 0 and "" on other threads.
uint64_t Id();
std::string_view Name();

}  // namespace this_vthread

}  // namespace bobbin

#endif  // BOBBIN_CORE_VTHREAD_H_
