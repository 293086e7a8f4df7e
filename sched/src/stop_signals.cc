// SPDX-License-Identifier: Apache-2.0

#include "sched/src/stop_signals.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/mutex.h>

#include "sched/src/lifecycle_core.h"
#include "sched/src/os_thread_handle.h"

namespace bobbin::internal {

namespace {

struct StopSignals {
  Atomic<uint32_t> last{0};  // The number of the signal; the futex word of the thread.
  Mutex mutex;
  std::vector<LifecycleCore*> watching ABSL_GUARDED_BY(mutex);
  bool has_thread ABSL_GUARDED_BY(mutex) = false;
};
// Never destroyed: a signal may come at any time.
StopSignals& OnStopSignals() {
  static StopSignals* const signals = std::make_unique<StopSignals>().release();
  return *signals;
}
// For the handler, which must not be the one that makes it.
Atomic<Atomic<uint32_t>*> last_signal{nullptr};

void NoteSignal(int signal) noexcept {
  const int error = errno;
  Atomic<uint32_t>& last = *last_signal.load();
  last.store(static_cast<uint32_t>(signal));
  FutexWakeOne(last);
  errno = error;
}

// The thread: signals that come while it works are one.
[[noreturn]] void RequestStopOnEachSignal() noexcept {
  StopSignals& signals = OnStopSignals();
  while (true) {
    const uint32_t signal = signals.last.exchange(0);
    if (signal == 0) {
      FutexWait(signals.last, 0, Deadline::Never().nanoseconds());
      continue;
    }
    const char* const name = sigabbrev_np(static_cast<int>(signal));
    const MutexLock lock(signals.mutex);
    for (LifecycleCore* const lifecycle : signals.watching) {
      lifecycle->RequestStop(fmt::format("SIG{}", name == nullptr ? "?" : name));
    }
  }
}

}  // namespace

void WatchStopSignals(const std::vector<int>& wanted, LifecycleCore& lifecycle) {
  StopSignals& signals = OnStopSignals();
  bool is_first;
  {
    const MutexLock lock(signals.mutex);
    std::erase(signals.watching, &lifecycle);
    signals.watching.push_back(&lifecycle);
    is_first = !std::exchange(signals.has_thread, true);
  }
  if (is_first) {
    last_signal.store(&signals.last);
    OsThreadHandle("stop-signals", [] { RequestStopOnEachSignal(); }).Detach();
  }
  for (const int signal : wanted) {
    struct sigaction action {};
    action.sa_handler = &NoteSignal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    BOBBIN_CHECK(sigaction(signal, &action, nullptr) == 0, "StopOnSignals: no such signal");
  }
}

void ForgetStopSignals(LifecycleCore& lifecycle) noexcept {
  StopSignals& signals = OnStopSignals();
  const MutexLock lock(signals.mutex);
  std::erase(signals.watching, &lifecycle);
}

}  // namespace bobbin::internal
