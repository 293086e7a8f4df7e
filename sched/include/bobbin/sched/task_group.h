// SPDX-License-Identifier: Apache-2.0
//
// TaskGroup: virtual threads that end before their group does.
//
// The scope proves that the children are gone, so here, and only here, capturing by reference is
// right. The destructor cancels the children that are left and waits for them.
//
//   Called from   virtual, platform and foreign threads of a runtime (see spawn.h). Spawn may also
//                 be called by the children; Wait and the destructor by one thread, the owner.
//   Suspends      Wait and the destructor, until no child is left.
//   Cancellation  Wait, interrupted, cancels the children, waits for them all the same, and returns
//                 CANCELLED or DEADLINE_EXCEEDED.
//   Errors        By default the first child that fails (a status that is not OK, or an exception)
//                 has the others cancelled; Wait returns that status or rethrows that exception,
//                 once.
//   Cost          A child costs its spawn, and one short spin lock at either end.
//
// Example:
//   bobbin::TaskGroup group;
//   for (size_t i = 0; i < venues.size(); ++i) {
//     group.Spawn([&, i]() -> absl::Status {
//       BOBBIN_ASSIGN_OR_RETURN(quotes[i], venues[i].Ask());
//       return absl::OkStatus();
//     });
//   }
//   BOBBIN_RETURN_IF_ERROR(group.Wait());

#ifndef BOBBIN_SCHED_TASK_GROUP_H_
#define BOBBIN_SCHED_TASK_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/sched/spawn.h>

namespace bobbin {

// What a child's failure does.
enum class OnFailure : uint8_t {
  kCancelOthers,  // The first failure cancels the other children; Wait reports it.
  // A failure is written to standard error and ends only its child; Wait returns OK.
  kLog,
};

struct TaskGroupOptions {
  OnFailure on_failure = OnFailure::kCancelOthers;
  // Where children are placed unless their SpawnOptions say otherwise.
  Placement placement = Placement::kHere;
};

class TaskGroup final : private internal::TaskOwner {
 public:
  explicit TaskGroup(TaskGroupOptions options = {});
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts a child. After a failure or Cancel it starts cancelled.
  template <internal::BodyCallable F>
  void Spawn(const SpawnOptions& options, F&& body) {
    internal::Task& task = internal::NewTask(runtime_, options);
    task.set_body(internal::Body::Emplace(task.body_storage(), std::forward<F>(body)));
    Launch(task, options.placement.value_or(options_.placement));
  }
  template <internal::BodyCallable F>
  void Spawn(F&& body) {
    Spawn(SpawnOptions{}, std::forward<F>(body));
  }

  // Waits until no child is left. The group may then be used again.
  absl::Status Wait();

  // Asks all children to stop.
  void Cancel() noexcept;

  // How many children have not ended.
  size_t live() const;

 private:
  void Launch(internal::Task& task, Placement placement) noexcept;
  void TaskEnded(internal::Task& task, internal::Outcome outcome) noexcept override;
  void CancelChildren() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  internal::Wake AwaitNone(internal::Phase phase) noexcept;

  const TaskGroupOptions options_;
  Runtime& runtime_;
  mutable internal::SpinLock lock_;
  internal::IntrusiveList<internal::Task> children_ ABSL_GUARDED_BY(lock_);
  size_t live_ ABSL_GUARDED_BY(lock_) = 0;
  bool is_cancelled_ ABSL_GUARDED_BY(lock_) = false;
  bool has_failed_ ABSL_GUARDED_BY(lock_) = false;
  internal::Outcome first_failure_ ABSL_GUARDED_BY(lock_);
  internal::WaitQueue waiter_ ABSL_GUARDED_BY(lock_);
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_TASK_GROUP_H_
