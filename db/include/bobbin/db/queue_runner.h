// SPDX-License-Identifier: Apache-2.0
//
// QueueRunner: runs the tasks of a DurableQueue on a named executor. QueueTask: what a run is told.
//
// Up to `concurrency` tasks are run at once; as many runners as one likes, in as many processes,
// share a queue. While a body runs its lease is extended, in time before it ends. A lease that is
// lost all the same - the database was away for too long, somebody has removed the row - stops the
// body: its waits answer CANCELLED, if it is a virtual thread, and QueueTask::stop is set. What it
// then returns is of no consequence, and QueueTask::CompleteIn is refused.
//
// A body returns OK, and the task is done; or an error, or throws, and the task is run again, see
// durable_queue.h. One that also writes into the database of the queue has both happen together:
//
//   return database.Transact([&](bobbin::db::Transaction& transaction) -> absl::Status {
//     ...  // What the task is to change.
//     return task.CompleteIn(transaction);
//   });
//
//   Called from   Run: virtual threads, and platform threads of a runtime; one at a time. The
//                 function: on the executor's threads, several at once. The rest: any thread.
//   Suspends      Run, until it is to stop and the bodies have ended.
//   Cancellation  Run asks the bodies to stop, waits for them for `stop_budget` at most, and
//   returns
//                 CANCELLED or DEADLINE_EXCEEDED.
//   Errors        Run: FAILED_PRECONDITION: the executor is of another kind. DEADLINE_EXCEEDED:
//   some
//                 bodies did not end in `stop_budget`; it names them, and leaves them to
//                 themselves: their leases run out. Errors of the database are logged and tried
//                 again.
//   Order         that of the queue; tasks that run at the same time may end in any.
//   Lifetime      What the function uses must outlive its runs. The queue's database must be open
//                 until then.
//   Cost          A task: a statement at its end, and its part of the claims of several tasks at
//                 once, which are two. The runner and the bodies share the database's connections:
//                 leave it one.
//
// Example:
//   bobbin::db::QueueRunner runner(queue, {.executor = "mail"},
//                                  [&](const bobbin::db::QueueTask& task) {
//                                    return SendMail(task.payload());
//                                  });
//   bobbin::VirtualThread thread = bobbin::Spawn({.name = "queue"}, [&] { return runner.Run(); });

#ifndef BOBBIN_DB_QUEUE_RUNNER_H_
#define BOBBIN_DB_QUEUE_RUNNER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include <bobbin/core/event.h>
#include <bobbin/db/backoff.h>
#include <bobbin/db/database.h>
#include <bobbin/db/durable_queue.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/task_options.h>

namespace bobbin::db {

namespace internal {
class QueueRun;
class QueueRunnerCore;
}  // namespace internal

// A task that is being run.
class QueueTask {
 public:
  // For QueueRunner.
  explicit QueueTask(internal::QueueRun& run) : run_(run) {}

  int64_t id() const;
  std::string_view payload() const;
  int priority() const;
  // Counted from 1.
  int attempt() const;
  // Grows with each run of this task: what a run writes elsewhere can be refused there if a greater
  // one has been seen.
  int64_t token() const;
  absl::Time created() const;

  // Set when the body should come to an end: the runner stops, or the lease is lost. On a virtual
  // thread every wait says so, too.
  Event& stop() const;

  // Has the task be done when `transaction`, of the queue's database, is committed. ABORTED: the
  // lease is lost; the transaction must then not be committed. A body that returns OK although the
  // transaction was rolled back is one that has failed.
  absl::Status CompleteIn(Transaction& transaction) const;

 private:
  internal::QueueRun& run_;
};

struct QueueRunnerOptions {
  // Where bodies run, and on which kind of thread; without a kind, whichever the executor is of.
  std::string executor = "queue-virtual";
  std::optional<ThreadKind> thread = ThreadKind::kVirtual;
  // Tasks that are run, or wait for their thread, at once.
  size_t concurrency = 16;
  // For how long a task is claimed; extended in thirds of it.
  absl::Duration lease = absl::Seconds(30);
  // A body that runs longer is cut short: its waits answer DEADLINE_EXCEEDED. Then it has failed.
  absl::Duration run_max = absl::InfiniteDuration();
  Backoff backoff = {};
  // Which errors do not pass: a task that fails so is dead at once.
  StatusCodes permanent = {absl::StatusCode::kInvalidArgument};
  // How long tasks stay in the table when they are done. Zero: they are taken out at once.
  absl::Duration keep_done = absl::ZeroDuration();
  // Run looks so often for tasks of which nobody has told it.
  absl::Duration poll = absl::Seconds(1);
  // For Stop: four fifths of it the bodies have to end by themselves, then they are asked to.
  std::chrono::nanoseconds stop_budget = std::chrono::seconds(20);
  // Where the numbers of QueueRunnerStatistics and QueueCounts go: bobbin.queue.completed and so
  // on. Must outlive the runner.
  Metrics* metrics = nullptr;
};

struct QueueRunnerStatistics {
  uint64_t claimed = 0;
  uint64_t completed = 0;
  uint64_t retried = 0;     // Has failed, and will be run again.
  uint64_t dead = 0;        // Has failed, and will not.
  uint64_t given_back = 0;  // Was stopped before its end, which does not count as an attempt.
  uint64_t lost = 0;        // Its lease was lost, or its end could not be written down.
  size_t running = 0;       // Now.
};

class QueueRunner {
 public:
  using Body = absl::AnyInvocable<absl::Status(const QueueTask&) const>;

  QueueRunner(const DurableQueue& queue, QueueRunnerOptions options, Body body);
  QueueRunner(const QueueRunner&) = delete;
  QueueRunner& operator=(const QueueRunner&) = delete;
  // REQUIRES: Run has returned.
  ~QueueRunner();

  // Runs what comes until Stop, or until the runtime stops (lifecycle.h), and then returns OK.
  absl::Status Run();
  // Has Run claim nothing more, and return when the bodies have ended; and all later calls at once.
  void Stop();
  // Says that there may be something to run: what PgBell is for.
  void Ring();

  QueueRunnerStatistics Statistics() const;

 private:
  std::shared_ptr<internal::QueueRunnerCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_QUEUE_RUNNER_H_
