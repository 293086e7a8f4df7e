// SPDX-License-Identifier: Apache-2.0

#include "io/src/signal_slot.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>

#include "absl/base/thread_annotations.h"
#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/thread_signal.h>
#include <bobbin/core/status.h>
#include <bobbin/io/signals.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

namespace {

using bobbin::internal::Atomic;
using bobbin::internal::SpinLock;
using bobbin::internal::SpinLockHolder;

constexpr int kSignalNumberMax = 64;

// What the process does about one signal.
struct SignalHandling {
  int users = 0;                 // Open slots that want it.
  struct sigaction previous {};  // Before the first of them.
};

std::array<SignalSlot, Signals::kOpenMax> signal_slots;
// Handlers that are running: written by them, read by Close.
Atomic<int> handlers_running{0};

SpinLock handlings_lock;
std::array<SignalHandling, kSignalNumberMax + 1> handlings ABSL_GUARDED_BY(handlings_lock);

// Why it may not be handled; empty if it may.
std::string_view SignalObjection(int signal) {
  if (signal < 1 || signal > kSignalNumberMax) return "there is no such signal";
  for (const int broken : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    if (signal == broken) return "it says that the program is broken";
  }
  if (signal == SIGKILL || signal == SIGSTOP) return "it cannot be handled";
  if (bobbin::internal::ThreadSignal::Is(signal)) {
    return "the runtime uses it (RuntimeOptions::thread_signal)";
  }
  return {};
}

// Has the handler called, if it is not yet: 0 if that goes.
Result BeginHandling(int signal, void (*handler)(int))
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(handlings_lock) {
  SignalHandling& handling = handlings[static_cast<size_t>(signal)];
  if (handling.users == 0) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (::sigaction(signal, &action, &handling.previous) != 0) return -errno;
  }
  ++handling.users;
  return 0;
}

void EndHandling(int signal, void (*handler)(int)) ABSL_EXCLUSIVE_LOCKS_REQUIRED(handlings_lock) {
  SignalHandling& handling = handlings[static_cast<size_t>(signal)];
  if (--handling.users > 0) return;
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  // Whoever has changed it since, has the last word.
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == handler) {
    ::sigaction(signal, &handling.previous, nullptr);
  }
}

}  // namespace

void SignalSlot::OnSignal(int signal) noexcept {
  const int error = errno;
  handlers_running.fetch_add(1);
  for (SignalSlot& slot : signal_slots) {
    if ((slot.wanted_.load() & BitOf(signal)) != 0) slot.Note(BitOf(signal));
  }
  handlers_running.fetch_sub(1);
  errno = error;
}

void SignalSlot::Note(uint64_t bit) noexcept {
  if ((pending_.fetch_or(bit) & bit) != 0) return;
  const uint64_t token = 1;
  // There are never more tokens than signals: there is room.
  while (::write(tokens_.get(), &token, sizeof(token)) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<SignalSlot*> SignalSlot::Open(std::initializer_list<int> signals) {
  uint64_t wanted = 0;
  for (const int signal : signals) {
    if (const std::string_view objection = SignalObjection(signal); !objection.empty()) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        fmt::format("signal {}: {}", signal, objection));
    }
    wanted |= BitOf(signal);
  }
  if (wanted == 0) {
    return MakeStatus(absl::StatusCode::kInvalidArgument, "signals: none to wait for");
  }
  FileDescriptor tokens(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
  if (!tokens.is_open()) return ResultStatus(-errno, "signals");

  const SpinLockHolder hold(handlings_lock);
  SignalSlot* const slot = std::find_if(
      signal_slots.begin(), signal_slots.end(),
      [](const SignalSlot& one) { return one.wanted_.load() == 0 && !one.tokens_.is_open(); });
  if (slot == signal_slots.end()) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      fmt::format("signals: {} are open already", signal_slots.size()));
  }
  slot->tokens_ = std::move(tokens);
  slot->pending_.store(0);
  slot->wanted_.store(wanted);
  for (uint64_t left = wanted; left != 0; left &= left - 1) {
    const int signal = std::countr_zero(left) + 1;
    const Result begun = BeginHandling(signal, &OnSignal);
    if (begun == 0) continue;
    // What was begun is ended.
    for (uint64_t done = wanted & ~left; done != 0; done &= done - 1) {
      EndHandling(std::countr_zero(done) + 1, &OnSignal);
    }
    slot->Empty();
    return ResultStatus(begun, fmt::format("signal {}", signal));
  }
  return slot;
}

void SignalSlot::Close() {
  const SpinLockHolder hold(handlings_lock);
  for (uint64_t left = wanted_.load(); left != 0; left &= left - 1) {
    EndHandling(std::countr_zero(left) + 1, &OnSignal);
  }
  Empty();
}

void SignalSlot::Empty() {
  wanted_.store(0);
  while (handlers_running.load() != 0) ::sched_yield();
  tokens_ = FileDescriptor();
}

std::optional<int> SignalSlot::Take() {
  uint64_t token = 0;
  if (::read(tokens_.get(), &token, sizeof(token)) != sizeof(token)) return std::nullopt;
  uint64_t pending = pending_.load();
  while (true) {
    BOBBIN_CHECK(pending != 0, "a token without a signal");
    if (pending_.compare_exchange_weak(pending, pending & (pending - 1))) {
      return std::countr_zero(pending) + 1;
    }
  }
}

}  // namespace bobbin::io::internal
