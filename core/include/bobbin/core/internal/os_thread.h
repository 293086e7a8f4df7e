// SPDX-License-Identifier: Apache-2.0
//
// OsThread: the record of a platform or foreign thread that meets virtual threads.
//
// Its waits block the OS thread on a futex word. Records are reused, never freed: a notifier may
// still be about to wake the word of a thread that has gone on (it saw the word before it had to
// sleep), and must then touch memory that is still such a word.
//
//   Called from   Adopt, Park: the OS thread itself. Wake: any thread, after it won the state word.
//   Suspends      Park blocks.
//   Cost          a wait that sleeps: one futex call on each side.

#ifndef BOBBIN_CORE_INTERNAL_OS_THREAD_H_
#define BOBBIN_CORE_INTERNAL_OS_THREAD_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

class ContextNode;
class LocalTable;

class OsThread final : public Thread {
 public:
  OsThread() noexcept : Thread(Role::kForeign, nullptr) {}

  // The calling OS thread's record, made at its first call and taken back when the thread exits.
  static OsThread& Adopt() noexcept;

  // What a pool says of its thread: role, name, and the runtime that it serves (opaque to core).
  void Describe(Role role, std::string_view name, void* runtime) noexcept;
  std::string_view name() const noexcept { return name_; }
  // The kernel's number of the OS thread whose record it is; 0 while it is nobody's.
  pid_t os_thread() const noexcept { return os_thread_.load(); }
  void* runtime() const noexcept { return runtime_; }
  LocalTable*& locals() noexcept { return locals_; }
  ContextNode*& context() noexcept { return context_values_; }

  // Calls `visit(record)` for the record of every OS thread that lives. Their names hold still
  // meanwhile; what they wait for does not. Nothing that `visit` calls may need a record.
  static void ForEach(absl::FunctionRef<void(const OsThread&)> visit) noexcept;

  // Blocks until the wait has been ended; the governing deadline ends an interruptible one.
  void BlockUntilWoken() noexcept;
  // Lets a thread whose wait the caller has ended go on.
  void Wake() noexcept;
  // Has it see that it was cancelled, if it waits. Called from: Cancel.
  void Poke() noexcept;

  // How many OS threads wait without a deadline, and have not been woken. Called from: any thread.
  static uint64_t waiting_for_good() noexcept;

 private:
  static constexpr size_t kNameBytes = 48;
  static void Retire(void* record) noexcept;
  void ClearDescription() noexcept;
  // Counts it, unless it has been woken. Returns what the signal says while it waits.
  uint32_t BeginWaitingForGood() noexcept;

  // A poked thread's own look at whether that ends its wait.
  bool EndsForCancel() noexcept;

  // What the signal says: nothing, woken, that the thread waits without a deadline, or that it is
  // to look whether it was cancelled. A poke that comes while it does not wait is seen at its next
  // wait.
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kWoken = 1;
  static constexpr uint32_t kWaitsForGood = 2;
  static constexpr uint32_t kPoked = 3;

  // Turned to kWoken by the waker, to kPoked by Cancel, all else by the thread itself; it is the
  // futex word.
  Atomic<uint32_t> signal_{kNone};
  void* runtime_ = nullptr;
  LocalTable* locals_ = nullptr;
  ContextNode* context_values_ = nullptr;  // Owned by the scopes that stand.
  OsThread* next_free_ = nullptr;
  OsThread* next_made_ = nullptr;    // Never changes once it is seen.
  Atomic<pid_t> os_thread_{0};  // Written by the OS thread itself; read by dumps.
  char name_[kNameBytes] = {};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_OS_THREAD_H_
