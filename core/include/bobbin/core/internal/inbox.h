// SPDX-License-Identifier: Apache-2.0
//
// Inbox: tasks that other threads want a carrier to look at.
//
// A stack of links: any thread pushes with one compare-exchange, the owner takes all with one
// exchange and reverses them, so that each batch is in the order of arrival. Nothing is ever taken
// singly, hence no ABA. The push is sequentially consistent because it is the first half of the
// handshake with a carrier that is about to sleep (sched/src/carrier.h has the proof).
//
//   Called from   Push: any thread. TakeAll, has_any: the owner.
//   Suspends      never.
//   Cost          one read-modify-write.

#ifndef BOBBIN_CORE_INTERNAL_INBOX_H_
#define BOBBIN_CORE_INTERNAL_INBOX_H_

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

class Inbox {
 public:
  void Push(Task& task) noexcept {
    Task* first = first_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
    do {
      task.link_ = first;
    } while (!first_.compare_exchange_weak(first, &task));
  }

  bool has_any() const noexcept {
    return first_.load(std::memory_order_relaxed) != nullptr;  // relaxed: a hint.
  }
  // The same, as the second half of the handshake.
  bool HasAnyOrdered() const noexcept { return first_.load() != nullptr; }

  // Calls `visit(task)` for each task that was there, oldest first. A task is out of the inbox when
  // it is visited.
  template <typename Visit>
  void TakeAll(Visit visit) {
    // Pairs with the release in Push.
    Task* newest = first_.exchange(nullptr, std::memory_order_acquire);
    Task* oldest = nullptr;
    while (newest != nullptr) {
      Task* const next = newest->link_;
      newest->link_ = oldest;
      oldest = newest;
      newest = next;
    }
    while (oldest != nullptr) {
      Task& task = *oldest;
      oldest = task.link_;
      visit(task);
    }
  }

 private:
  Atomic<Task*> first_{nullptr};  // Written by any thread; emptied by the owner.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_INBOX_H_
