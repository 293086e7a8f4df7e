// SPDX-License-Identifier: Apache-2.0
//
// TaskGroup: virtual threads that end before their group does.
//
// The scope proves that the children are gone, so here, and only here, capturing by reference is
// right. The destructor cancels the children that are left and waits for them.
//
//   Called from   virtual, platform and foreign threads of a runtime (see spawn.h). Spawn, TrySpawn
//                 and Async may also be called by the children; Wait and the destructor by one
//                 thread, the owner.
//   Suspends      Wait and the destructor, until no child is left. Spawn and Async, while there are
//                 `live_max` children.
//   Cancellation  Wait, interrupted, cancels the children, waits for them all the same, and returns
//                 CANCELLED or DEADLINE_EXCEEDED. A Spawn that waits, interrupted, starts no child;
//                 for the group it is one that has failed with that status.
//   Errors        By default the first child that fails (a status that is not OK, or an exception)
//                 has the others cancelled; Wait returns that status or rethrows that exception,
//                 once. Other policies: see OnFailure. TrySpawn: RESOURCE_EXHAUSTED at `live_max`,
//                 and at the runtime's limit.
//   Order         Those who wait in Spawn go on first come, first served.
//   Cost          A child costs its spawn, and one short spin lock at either end; with `live_max`
//                 one more. Async: a promise besides.
//
// A limit holds back those who feed the group, not its own children: one that waited for its
// siblings to end could wait for itself. A child that says Spawn in a full group goes over the
// limit; TrySpawn keeps to it.
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
//
// The same with results:
//   bobbin::Future<Quote> here = group.Async([&] { return venue.Ask(); });

#ifndef BOBBIN_SCHED_TASK_GROUP_H_
#define BOBBIN_SCHED_TASK_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/future.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/sched/spawn.h>

namespace bobbin {

// What a child's failure does.
enum class OnFailure : uint8_t {
  kCancelOthers,  // The first failure cancels the other children; Wait reports it.
  kCollect,       // The others go on; Wait reports the first failure, TakeFailures all of them.
  // A failure is a line of the log (log.h) and ends only its child; Wait returns OK.
  kLog,
};

struct TaskGroupOptions {
  OnFailure on_failure = OnFailure::kCancelOthers;
  // Where children are placed unless their SpawnOptions say otherwise.
  Placement placement = Placement::kHere;
  // How many children may be alive at once. At least 1.
  size_t live_max = std::numeric_limits<size_t>::max();
};

// How a child has failed.
struct ChildFailure {
  std::string name;
  uint64_t id = 0;               // 0: it could not be started.
  absl::Status status;           // OK, if it threw.
  std::exception_ptr exception;  // Null, if it did not.
};

class TaskGroup final : private internal::TaskOwner {
 public:
  explicit TaskGroup(TaskGroupOptions options = {});
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts a child, as soon as there is a place for it. After a failure or Cancel it starts
  // cancelled.
  template <internal::BodyCallable F>
  void Spawn(const SpawnOptions& options, F&& body) {
    if (!Admit(options).ok()) return;
    Start(internal::NewTask(runtime_, options), options, std::forward<F>(body));
  }
  template <internal::BodyCallable F>
  void Spawn(F&& body) {
    Spawn(SpawnOptions{}, std::forward<F>(body));
  }

  // Starts a child if there is a place for it; never suspends. Else `body` is as before.
  template <internal::BodyCallable F>
  [[nodiscard]] absl::Status TrySpawn(const SpawnOptions& options, F&& body) {
    const absl::StatusOr<internal::Task*> task = TryNewChild(options);
    if (task.ok()) Start(**task, options, std::forward<F>(body));
    return task.status();
  }

  // Starts a child that returns a T or StatusOr<T>, and returns a future of it. For the group it is
  // a child like any other, also if it fails, or if its future is dropped.
  template <typename F>
  auto Async(const SpawnOptions& options, F&& body) {
    using T = internal::FutureValue<std::invoke_result_t<std::decay_t<F>&>>;
    auto [promise, future] = MakePromise<T>();
    if (absl::Status admitted = Admit(options); !admitted.ok()) {
      promise.Set(std::move(admitted));
    } else {
      Start(internal::NewTask(runtime_, options), options,
            [promise = std::move(promise), body = std::forward<F>(body)]() mutable {
              return Keep(body, promise);
            });
    }
    return std::move(future);
  }
  template <typename F>
  auto Async(F&& body) {
    return Async(SpawnOptions{}, std::forward<F>(body));
  }

  // Waits until no child is left. The group may then be used again.
  absl::Status Wait();

  // Asks all children to stop.
  void Cancel() noexcept;

  // How many children have not ended.
  size_t live() const;

  // With kCollect: the failures since the last call, in the order in which they came.
  std::vector<ChildFailure> TakeFailures();

 private:
  bool is_limited() const noexcept {
    return options_.live_max != std::numeric_limits<size_t>::max();
  }
  // Takes a place for a child, waiting for it. Not OK: the group has failed with that.
  absl::Status Admit(const SpawnOptions& options) {
    return is_limited() ? AdmitLimited(options) : absl::OkStatus();
  }
  absl::Status AdmitLimited(const SpawnOptions& options);
  absl::Status AwaitPlace();
  // A task that has a place, if there are both.
  absl::StatusOr<internal::Task*> TryNewChild(const SpawnOptions& options);

  // Starts `task`, which has a place, with `body`.
  template <typename F>
  void Start(internal::Task& task, const SpawnOptions& options, F&& body) {
    task.set_body(internal::Body::Emplace(task.body_storage(), std::forward<F>(body)));
    Launch(task, options.placement.value_or(options_.placement));
  }
  // What a child of Async does: keeps what `body` returns or throws, and passes a failure on.
  template <typename F, typename T>
  static absl::Status Keep(F& body, Promise<T>& promise) {
    FutureResult<T> result{};
    std::exception_ptr exception = internal::CaptureException(
        [&] { internal::MoveResult(internal::CallForResult(body), result); });
    if (exception != nullptr) {
      promise.SetException(exception);
      std::rethrow_exception(std::move(exception));
    }
    absl::Status status = internal::StatusOf(result);
    promise.Set(std::move(result));
    return status;
  }

  void Launch(internal::Task& task, Placement placement) noexcept;
  // Here, and not at the end, which is told on the carrier's own stack: a sink may wait.
  void BodyFailed(const internal::Task& task, const internal::Outcome& outcome) noexcept override;
  void TaskEnded(internal::Task& task, internal::Outcome outcome) noexcept override;
  // With kLog: writes the line.
  void LogFailure(std::string_view name, uint64_t id, const internal::Outcome& outcome) const;
  // With kCollect: what is to be kept, made without the lock.
  std::list<ChildFailure> Record(std::string_view name, uint64_t id,
                                 const internal::Outcome& outcome) const;
  void NoteFailure(internal::Outcome& outcome, std::list<ChildFailure>& record) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // One child or place less: it goes to whoever waits for one; the last one ends the Wait.
  void GiveUpPlace(internal::WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CancelChildren() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  internal::Wake AwaitNone(internal::Phase phase) noexcept;

  const TaskGroupOptions options_;
  Runtime& runtime_;
  mutable internal::SpinLock lock_;
  internal::IntrusiveList<internal::Task> children_ ABSL_GUARDED_BY(lock_);
  size_t live_ ABSL_GUARDED_BY(lock_) = 0;  // Children, and places that Admit has taken.
  bool is_cancelled_ ABSL_GUARDED_BY(lock_) = false;
  bool has_failed_ ABSL_GUARDED_BY(lock_) = false;
  internal::Outcome first_failure_ ABSL_GUARDED_BY(lock_);
  std::list<ChildFailure> failures_ ABSL_GUARDED_BY(lock_);
  internal::WaitQueue waiter_ ABSL_GUARDED_BY(lock_);
  // Who waits for a place. Invariant: nobody, unless all are taken.
  internal::WaitQueue spawners_ ABSL_GUARDED_BY(lock_);
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_TASK_GROUP_H_
