// SPDX-License-Identifier: Apache-2.0
//
// Batcher: carries items to a platform thread, which writes them out a batch at a time.
//
// Who adds never waits: what finds the queue full is dropped, and counted. The thread takes what
// has come when a batch is full, or when the oldest has waited for `interval`.
//
//   Called from   Add, Statistics: any thread, carriers' among them. Flush: virtual, platform and
//                 foreign threads. Stop and the destructor: not from the writing function.
//   Suspends      Flush, until what was added before it is written or given up. Stop and the
//                 destructor, until all is, or the budget is spent. Add never.
//   Cancellation  Flush obeys it. Stop and the destructor do not.
//   Lifetime      A writing function that does not return within the budget is abandoned with its
//                 thread; both keep what they use.
//   Cost          Add: a spin lock, and a wake for the first item of a batch and the last.
//
// Why the thread does not sleep on a full queue: who adds the first item, or fills a batch, gives
// the semaphore a permit after the item is in; the thread takes a permit before it looks. A permit
// too many is a look for nothing.

#ifndef BOBBIN_SCHED_SRC_BATCHER_H_
#define BOBBIN_SCHED_SRC_BATCHER_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/check.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/batch_statistics.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/span.h>

#include "sched/src/platform_pool_core.h"

namespace bobbin::internal {

struct BatcherOptions {
  std::string name;  // Of the thread.
  size_t queue_max = 0;
  size_t batch_max = 0;
  std::chrono::nanoseconds interval{0};
  std::chrono::nanoseconds stop_budget{0};
};

template <typename T>
class Batcher {
 public:
  // Writes the items out, on the thread. `stop` is set when all is to end soon.
  using Write = absl::AnyInvocable<absl::Status(std::vector<T>& batch, Event& stop)>;

  Batcher(BatcherOptions options, Write write)
      : core_(std::make_shared<Core>(std::move(options), std::move(write))),
        pool_({.name = core_->options.name,
               .threads = 1,
               .shutdown_budget = core_->options.stop_budget}) {
    // The thread works for everybody, so it has the context of nobody.
    const ContextSwap nothing(nullptr);
    const absl::Status started = pool_.Submit([core = core_] { core->Loop(); });
    BOBBIN_CHECK(started.ok(), MessageOf(started));
  }
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;
  ~Batcher() { Stop().IgnoreError(); }

  void Add(T item) { core_->Add(std::move(item)); }
  BatchStatistics Statistics() const { return core_->Statistics(); }
  absl::Status Flush() { return core_->Flush(); }

  // Writes out what is there, and takes nothing any more. DEADLINE_EXCEEDED: the budget is spent,
  // and what was left is dropped.
  absl::Status Stop() { return Stop(core_->options.stop_budget); }
  // The same within another budget. Of several calls the first one's counts.
  absl::Status Stop(std::chrono::nanoseconds budget) {
    core_->BeginStop();
    const absl::Status stopped = pool_.core().Shutdown(budget);
    core_->Abandon();
    return stopped;
  }

 private:
  struct Core {
    Core(BatcherOptions batcher_options, Write write_batch)
        : options(std::move(batcher_options)), write(std::move(write_batch)) {
      queue.reserve(options.queue_max);
    }

    void Add(T item) ABSL_LOCKS_EXCLUDED(lock) {
      size_t queued = 0;
      {
        SpinLockHolder hold(lock);
        if (is_stopping || queue.size() == options.queue_max) {
          ++counts.dropped;
          return;
        }
        queue.push_back(std::move(item));
        queued = queue.size();
        ++counts.added;
      }
      if (queued == 1 || queued == options.batch_max) wakes.Release();
    }

    BatchStatistics Statistics() const ABSL_LOCKS_EXCLUDED(lock) {
      SpinLockHolder hold(lock);
      BatchStatistics now = counts;
      now.queued = now.added - now.written - now.failed - abandoned;
      now.dropped += abandoned;
      return now;
    }

    absl::Status Flush() ABSL_LOCKS_EXCLUDED(lock, mutex) {
      uint64_t added = 0;
      {
        SpinLockHolder hold(lock);
        added = counts.added;
        is_flushing = true;
      }
      wakes.Release();
      MutexLock hold(mutex);
      return done_changed.Wait(mutex, [&] { return Done() >= added; });
    }

    void BeginStop() ABSL_LOCKS_EXCLUDED(lock) {
      {
        SpinLockHolder hold(lock);
        is_stopping = true;
      }
      stop.Set();
      wakes.Release();
    }

    // Gives up what is left, and what the thread still has in its hands.
    void Abandon() ABSL_LOCKS_EXCLUDED(lock, mutex) {
      {
        SpinLockHolder hold(lock);
        is_abandoned = true;
        abandoned = counts.added - counts.written - counts.failed;
      }
      NotifyDone();
    }

    uint64_t Done() const ABSL_LOCKS_EXCLUDED(lock) {
      SpinLockHolder hold(lock);
      return counts.written + counts.failed + abandoned;
    }

    void NotifyDone() ABSL_LOCKS_EXCLUDED(mutex) {
      MutexLock hold(mutex);
      done_changed.NotifyAll();
    }

    void Loop() ABSL_LOCKS_EXCLUDED(lock, mutex) {
      // A span of what writes spans would have to be written, too.
      const UntracedScope untraced;
      std::vector<T> taken;
      taken.reserve(options.queue_max);
      while (true) {
        AwaitBatch();
        bool is_last = false;
        {
          SpinLockHolder hold(lock);
          if (is_abandoned) return;
          taken.swap(queue);
          is_flushing = false;
          is_last = is_stopping;
        }
        WriteOut(taken);
        if (is_last) return;
      }
    }

    // Waits until there is something, and then until a batch is full or it has waited long enough.
    void AwaitBatch() ABSL_LOCKS_EXCLUDED(lock) {
      const auto is_due = [&](size_t enough) {
        SpinLockHolder hold(lock);
        return queue.size() >= enough || is_flushing || is_stopping;
      };
      while (!is_due(1)) wakes.Acquire().IgnoreError();
      const Deadline deadline = Deadline::After(options.interval);
      while (!is_due(options.batch_max)) {
        if (!wakes.AcquireUntil(1, deadline).ok()) return;
      }
    }

    void WriteOut(std::vector<T>& taken) ABSL_LOCKS_EXCLUDED(lock, mutex) {
      std::vector<T> batch;
      size_t size = 0;
      for (size_t begin = 0; begin < taken.size(); begin += size) {
        size = std::min(options.batch_max, taken.size() - begin);
        const auto first = taken.begin() + static_cast<ptrdiff_t>(begin);
        batch.assign(std::make_move_iterator(first),
                     std::make_move_iterator(first + static_cast<ptrdiff_t>(size)));
        const absl::Status written = write(batch, stop);
        {
          SpinLockHolder hold(lock);
          if (is_abandoned) return;
          (written.ok() ? counts.written : counts.failed) += size;
        }
        NotifyDone();
      }
      taken.clear();
    }

    // Never change, but for the function, which is the thread's.
    const BatcherOptions options;
    Write write;

    mutable SpinLock lock;
    std::vector<T> queue ABSL_GUARDED_BY(lock);  // Has room for queue_max from the beginning.
    BatchStatistics counts ABSL_GUARDED_BY(lock);
    uint64_t abandoned ABSL_GUARDED_BY(lock) = 0;
    bool is_flushing ABSL_GUARDED_BY(lock) = false;
    bool is_stopping ABSL_GUARDED_BY(lock) = false;
    bool is_abandoned ABSL_GUARDED_BY(lock) = false;

    Semaphore wakes{0};
    Event stop;
    Mutex mutex;  // For the wait alone.
    Condition done_changed;
  };

  const std::shared_ptr<Core> core_;
  PlatformPool pool_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_BATCHER_H_
