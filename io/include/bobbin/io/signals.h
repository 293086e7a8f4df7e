// SPDX-License-Identifier: Apache-2.0
//
// Signals: waits for signals of the process, such as SIGTERM.
//
// While one stands, its signals do no more than end a wait: the process goes on. Each Signals that
// has asked for a signal gets it, and of several threads that wait at the same one of them. A
// signal that comes while nobody waits is kept; one that comes again before it was taken counts
// once, as everywhere.
//
// What it does to the process. No mask is changed: the signals are handled, by whichever thread the
// kernel chooses among those that do not block them. Carriers and platform threads block signals,
// so there must be another one that does not; the main thread is, unless it was told otherwise. The
// handler notes the signal and touches nothing else; system calls go on after it (SA_RESTART). What
// was done about a signal before, is done again when the last Signals for it has ended, unless
// somebody else has changed it meanwhile; a signal that is on its way then meets it. Processes that
// are started inherit neither the handler nor what is kept.
//
//   Called from   Wait: virtual threads of a runtime with an I/O poller (see io.h), platform and
//                 foreign threads; the last two block. The rest: any thread.
//   Suspends      Wait, until one of the signals comes.
//   Cancellation  Wait returns CANCELLED or DEADLINE_EXCEEDED; no signal was taken.
//   Errors        INVALID_ARGUMENT: a signal that cannot be handled, or must not be: SIGKILL,
//                 SIGSTOP, those of a broken program (SIGSEGV and its like), and that of
//                 RuntimeOptions::thread_signal. RESOURCE_EXHAUSTED: there are kOpenMax already, or
//                 no descriptor is left.
//   Order         Of several that have come, the one with the smallest number is taken first.
//   Lifetime      Must outlive every call.
//   Cost          A descriptor. A signal: two system calls, besides the kernel's.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto stop, bobbin::io::Signals::Open({SIGTERM, SIGINT}));
//   BOBBIN_ASSIGN_OR_RETURN(int signal, stop.Wait());

#ifndef BOBBIN_IO_SIGNALS_H_
#define BOBBIN_IO_SIGNALS_H_

#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"

namespace bobbin::io {

namespace internal {
class SignalSlot;
}

class Signals {
 public:
  // As many may stand at once.
  static constexpr size_t kOpenMax = 64;

  // Holds nothing; to be assigned to.
  Signals() = default;
  Signals(Signals&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Signals& operator=(Signals&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~Signals();

  // From now on these signals are this one's, also.
  static absl::StatusOr<Signals> Open(std::initializer_list<int> signals);

  // Waits until one has come and takes it.
  absl::StatusOr<int> Wait();
  // Takes one that has come; never suspends.
  std::optional<int> TryTake();

 private:
  explicit Signals(internal::SignalSlot& slot) : slot_(&slot) {}
  internal::SignalSlot& slot() const;

  internal::SignalSlot* slot_ = nullptr;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_SIGNALS_H_
