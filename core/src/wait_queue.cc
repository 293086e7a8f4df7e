// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/wait_queue.h>

#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/os_thread.h>

namespace bobbin::internal {

void WakeList::DispatchAll() noexcept {
  Dispatcher* const here = Current().dispatcher();
  Thread* thread = first_;
  first_ = nullptr;
  while (thread != nullptr) {
    // Once dispatched, a thread may be gone.
    Thread* const next = thread->next_;
    if (thread->role() != Role::kVirtual) {
      static_cast<OsThread*>(thread)->Wake();
    } else if (Dispatcher* const carrier = thread->dispatcher(); carrier == here) {
      carrier->MakeReady(*thread);
    } else {
      carrier->PostReady(static_cast<Task&>(*thread));
    }
    thread = next;
  }
}

}  // namespace bobbin::internal
