// SPDX-License-Identifier: Apache-2.0

#include "sched/src/dump.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/mutex.h>

#include "sched/src/carrier.h"
#include "sched/src/current_runtime.h"
#include "sched/src/dump_collector.h"
#include "sched/src/dump_records.h"
#include "sched/src/limits.h"
#include "sched/src/os_thread_handle.h"
#include "sched/src/runtime_core.h"

namespace bobbin {

namespace internal {

namespace {

struct Registry {
  Mutex mutex;  // Held for the length of a dump: one at a time, and no runtime goes away meanwhile.
  std::vector<RuntimeCore*> runtimes ABSL_GUARDED_BY(mutex);
};

Registry& Runtimes() {
  // Never destroyed: a runtime may live longer than any static object.
  static Registry* const registry = std::make_unique<Registry>().release();
  return *registry;
}

// On an OS thread that may block.
std::string MakeDump(RuntimeCore* only, const DumpOptions& options) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Registry& registry = Runtimes();
  // Whoever makes a dump already will be done within its own budget, as a rule.
  if (!registry.mutex.LockUntil(Deadline::After(options.budget)).ok()) {
    return "no dump: another one is being made\n";
  }
  DumpCollector collector(options);
  for (RuntimeCore* const runtime : registry.runtimes) {
    if (only == nullptr || only == runtime) collector.Add(*runtime);
  }
  const DumpRecords records = std::move(collector).Finish();
  registry.mutex.unlock();
  return options.format == DumpFormat::kJson ? WriteJson(records)
                                             : WriteText(records, options.listed_max);
}

void WriteToStandardError(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // Nothing can be done about it here.
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// An event that dumps show as what it is.
class DumpEnd {
 public:
  void Tell() noexcept {
    WakeList woken;
    {
      SpinLockHolder hold(lock_);
      is_told_ = true;
      if (Waiter* const waiter = waiter_.ClaimFront()) woken.Add(*waiter);
    }
    woken.Dispatch();
  }
  void Await() noexcept {
    static constexpr WaitKind kDumpWait = {"dump", WaitObject::kNone};
    Waiter self(kDumpWait);
    {
      SpinLockHolder hold(lock_);
      if (is_told_) return;
      waiter_.PushBack(self, Phase::kWaitingShielded);
    }
    const Wake wake = self.Park();
    BOBBIN_CHECK(wake == Wake::kNotified, "nothing ends a shielded wait but its notify");
  }

 private:
  SpinLock lock_;
  bool is_told_ ABSL_GUARDED_BY(lock_) = false;
  WaitQueue waiter_ ABSL_GUARDED_BY(lock_);
};

void NameThisThread(std::string_view name) noexcept {
  static_cast<OsThread&>(Current()).Describe(Role::kForeign, name, nullptr);
}

}  // namespace

void RegisterRuntime(RuntimeCore& runtime) {
  const MutexLock lock(Runtimes().mutex);
  Runtimes().runtimes.push_back(&runtime);
}

void UnregisterRuntime(RuntimeCore& runtime) noexcept {
  const MutexLock lock(Runtimes().mutex);
  std::erase(Runtimes().runtimes, &runtime);
}

std::string DumpRuntimes(RuntimeCore* only, const DumpOptions& options) {
  std::string text;
  DumpEnd end;
  absl::StatusOr<OsThreadHandle> thread = OsThreadHandle::TryStart("dump", [&] {
    NameThisThread("dump");
    text = MakeDump(only, options);
    end.Tell();
  });
  if (!thread.ok()) return "no dump: " + std::string(thread.status().message()) + "\n";
  end.Await();
  thread->Join();  // It only has to leave its last function.
  return text;
}

// --- A check has failed.

namespace {

constexpr std::chrono::seconds kFailureBudget(2);
constexpr std::chrono::seconds kFailureGrace(5);
constexpr time_t kFailureSecondsMax = 20;

// Whatever the rest waits for, the process ends.
void AbortSoon() noexcept {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGABRT;
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  itimerspec time{};
  time.it_value.tv_sec = kFailureSecondsMax;
  timer_settime(timer, 0, &time, nullptr);
}

Atomic<uint32_t> is_failure_dumped{0};  // Set by the dump's thread; the futex word.

}  // namespace

void DumpForFailedCheck() noexcept {
  AbortSoon();
  WriteToStandardError("on this stack:\n");
  WriteFrames(Backtrace::OfCaller());
  const Thread* const self = CurrentOrNull();
  Carrier* const carrier = self == nullptr ? nullptr : static_cast<Carrier*>(self->dispatcher());
  absl::StatusOr<OsThreadHandle> thread = OsThreadHandle::TryStart("dump", [] {
    NameThisThread("dump");
    WriteToStandardError(
        MakeDump(nullptr, {.budget = kFailureBudget, .listed_max = kListedInFailure}));
    is_failure_dumped.store(1);
    FutexWakeOne(is_failure_dumped);
  });
  if (!thread.ok()) return;
  thread->Detach();
  // Nobody else can describe the threads of the carrier that the check has failed on.
  const Deadline end = Deadline::After(kFailureBudget + kFailureGrace);
  while (is_failure_dumped.load() == 0 && !end.HasPassed(MonotonicNow())) {
    if (carrier != nullptr) carrier->DescribeFromInside();
    const Deadline look = Deadline::After(std::chrono::milliseconds(1));
    FutexWait(is_failure_dumped, 0, look.nanoseconds());
  }
}

}  // namespace internal

std::string Dump(const DumpOptions& options) { return internal::DumpRuntimes(nullptr, options); }

// --- On a signal.

namespace {

using internal::Atomic;
using internal::FutexWait;
using internal::FutexWakeOne;
using internal::OsThreadHandle;
using internal::SpinLock;
using internal::SpinLockHolder;

struct SignalDumps {
  Atomic<uint32_t> wanted{0};  // Counted by the handler; the futex word of the dumps' thread.
  SpinLock lock;
  DumpOptions options ABSL_GUARDED_BY(lock);
  bool has_thread ABSL_GUARDED_BY(lock) = false;
};
// Never destroyed: a signal may come at any time.
SignalDumps& OnSignals() {
  static SignalDumps* const dumps = std::make_unique<SignalDumps>().release();
  return *dumps;
}
// For the handler, which must not be the one that makes them.
Atomic<Atomic<uint32_t>*> dumps_wanted{nullptr};

void WantDump(int) noexcept {
  const int error = errno;
  Atomic<uint32_t>& wanted = *dumps_wanted.load();
  wanted.fetch_add(1);
  FutexWakeOne(wanted);
  errno = error;
}

// The dumps' thread: signals that come while it writes are one.
[[noreturn]] void DumpOnEachSignal() noexcept {
  SignalDumps& dumps = OnSignals();
  internal::NameThisThread("signal-dump");
  uint32_t done = 0;
  while (true) {
    const uint32_t wanted = dumps.wanted.load();
    if (wanted == done) {
      FutexWait(dumps.wanted, done, Deadline::Never().nanoseconds());
      continue;
    }
    done = wanted;
    DumpOptions options;
    {
      SpinLockHolder hold(dumps.lock);
      options = dumps.options;
    }
    internal::WriteToStandardError(internal::MakeDump(nullptr, options));
  }
}

}  // namespace

void DumpOnSignal(int signal, const DumpOptions& options) {
  SignalDumps& dumps = OnSignals();
  bool is_first;
  {
    SpinLockHolder hold(dumps.lock);
    dumps.options = options;
    is_first = !std::exchange(dumps.has_thread, true);
  }
  if (is_first) {
    dumps_wanted.store(&dumps.wanted);
    OsThreadHandle("signal-dump", [] { DumpOnEachSignal(); }).Detach();
  }
  struct sigaction action {};
  action.sa_handler = &WantDump;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  BOBBIN_CHECK(sigaction(signal, &action, nullptr) == 0, "DumpOnSignal: no such signal");
}

}  // namespace bobbin
