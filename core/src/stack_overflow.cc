// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/stack_overflow.h>
#include <bobbin/core/internal/task.h>

#include "core/src/standard_error.h"

namespace bobbin::internal {

namespace {

// Enough for the handler and for a symbol look-up.
constexpr size_t kSignalStackBytes = size_t{64} << 10;

struct PreviousActions {
  struct sigaction segv;
  struct sigaction bus;
};
PreviousActions previous_actions;  // Written once, before the handler is installed.

void WriteNumber(uint64_t number, int base) noexcept {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  WriteError({digits.data(), static_cast<size_t>(end - digits.data())});
}

// The virtual thread on whose guard `address` lies, if it is the running one's.
const Task* OverflownTask(const void* address) noexcept {
  const Thread* const thread = CurrentOrNull();
  if (thread == nullptr || thread->role() != Role::kVirtual) return nullptr;
  const auto& task = static_cast<const Task&>(*thread);
  const char* const base = task.stack().base;
  const StackPool& pool = thread->dispatcher()->stacks().pool().OfTask(task);
  const auto* const fault = static_cast<const char*>(address);
  if (fault < base || fault >= base + pool.guard_bytes()) return nullptr;
  return &task;
}

void Report(const Task& task, const void* context) noexcept {
  const StackPool& pool = task.dispatcher()->stacks().pool().OfTask(task);
  WriteError("bobbin: stack overflow in virtual thread \"");
  WriteError(task.name());
  WriteError("\" (id ");
  WriteNumber(task.id(), 10);
  WriteError("): its stack of ");
  WriteNumber(pool.BytesOf(task.stack()), 10);
  WriteError(" bytes, 0x");
  WriteNumber(reinterpret_cast<uintptr_t>(pool.LimitOf(task.stack())), 16);
  WriteError(" to 0x");
  WriteNumber(reinterpret_cast<uintptr_t>(pool.TopOf(task.stack())), 16);
  WriteError(
      ", is used up; give it more with SpawnOptions::stack_bytes, or all with "
      "RuntimeOptions::stack_bytes\n");
  WriteFrames(Backtrace::OfInterrupted(context));
}

void OnFault(int signal, siginfo_t* info, void* context) noexcept {
  if (const Task* const task = OverflownTask(info->si_addr)) {
    Report(*task, context);
    // Ends the process in the way that core files and parents know.
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  const struct sigaction& previous =
      signal == SIGSEGV ? previous_actions.segv : previous_actions.bus;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The instruction faults again when the handler returns, and then takes the default course.
    sigaction(signal, &previous, nullptr);
  } else {
    previous.sa_handler(signal);
  }
}

}  // namespace

void InstallStackOverflowReport() noexcept {
  static const bool is_installed = [] {
    PrepareUnwinder();
    struct sigaction action {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, nullptr, &previous_actions.segv);
    sigaction(SIGBUS, nullptr, &previous_actions.bus);
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    return true;
  }();
  static_cast<void>(is_installed);
}

SignalStack::SignalStack() noexcept
    : memory_(mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0)) {
  if (memory_ == MAP_FAILED) return;  // Then an overflow is not named; all else works.
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == MAP_FAILED) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(memory_, kSignalStackBytes);
}

}  // namespace bobbin::internal
