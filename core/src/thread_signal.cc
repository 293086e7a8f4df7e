// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/interruptible_call.h>
#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/core/internal/thread_signal.h>

namespace bobbin::internal {

namespace {

// Written by Install; read by senders and by threads that let it in.
Atomic<int> installed_signal{0};
struct sigaction previous_action;  // Written before the handler is installed.

void OnSignal(int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const bool has_left = InterruptibleCall::LeaveInterrupted(context);
  const bool has_answered = StackSample::Answer(context);
  if (!has_left && !has_answered) {
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
      previous_action.sa_sigaction(signal, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
      previous_action.sa_handler(signal);
    }
  }
  errno = error;
}

}  // namespace

void ThreadSignal::Install(int signal) noexcept {
  if (installed_signal.exchange(signal) == signal) return;
  PrepareUnwinder();
  struct sigaction action {};
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before {};
  sigaction(signal, nullptr, &before);
  if ((before.sa_flags & SA_SIGINFO) == 0 || before.sa_sigaction != &OnSignal) {
    previous_action = before;
  }
  BOBBIN_CHECK(sigaction(signal, &action, nullptr) == 0, "that signal cannot be handled");
}

bool ThreadSignal::Is(int signal) noexcept {
  return signal != 0 && installed_signal.load() == signal;
}

void ThreadSignal::AdmitHere() noexcept {
  const int signal = installed_signal.load();
  if (signal == 0) return;
  sigset_t admitted;
  sigemptyset(&admitted);
  sigaddset(&admitted, signal);
  pthread_sigmask(SIG_UNBLOCK, &admitted, nullptr);
}

bool ThreadSignal::Send(pid_t os_thread) noexcept {
  const int signal = installed_signal.load();
  return signal != 0 && syscall(SYS_tgkill, getpid(), os_thread, signal) == 0;
}

}  // namespace bobbin::internal
