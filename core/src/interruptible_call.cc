// SPDX-License-Identifier: Apache-2.0

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <bobbin/core/internal/interruptible_call.h>
#include <bobbin/core/internal/thread_signal.h>

#include "core/src/sanitizer.h"

#if defined(__SANITIZE_THREAD__)
#include <dlfcn.h>
#include <pthread.h>

#include <bobbin/core/check.h>
#endif

// rdi: the word, rsi: the number, rdx: the arguments. Between `begin` and `end` rbx points to the
// word, and nothing else is on the stack than there is at `out`.
__asm__(
    ".text\n"
    ".globl bobbin_interruptible_call\n"
    ".hidden bobbin_interruptible_call\n"
    ".hidden bobbin_interruptible_call_begin\n"
    ".hidden bobbin_interruptible_call_end\n"
    ".hidden bobbin_interruptible_call_out\n"
    ".globl bobbin_interruptible_call_begin\n"
    ".globl bobbin_interruptible_call_end\n"
    ".globl bobbin_interruptible_call_out\n"
    ".type bobbin_interruptible_call, @function\n"
    ".balign 16\n"
    "bobbin_interruptible_call:\n"
    "  .cfi_startproc\n"
    "  pushq %rbx\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_rel_offset rbx, 0\n"
    "  movq %rdi, %rbx\n"
    "  movq %rsi, %rax\n"
    "  movq %rdx, %r11\n"
    "  movq (%r11), %rdi\n"
    "  movq 8(%r11), %rsi\n"
    "  movq 16(%r11), %rdx\n"
    "  movq 24(%r11), %r10\n"
    "  movq 32(%r11), %r8\n"
    "  movq 40(%r11), %r9\n"
    "bobbin_interruptible_call_begin:\n"
    "  cmpl $0, (%rbx)\n"
    "  jne bobbin_interruptible_call_out\n"
    "  syscall\n"
    "bobbin_interruptible_call_end:\n"
    "  popq %rbx\n"
    "  .cfi_remember_state\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  .cfi_restore rbx\n"
    "  ret\n"
    "  .cfi_restore_state\n"
    "bobbin_interruptible_call_out:\n"
    "  movq $-4, %rax\n"  // -EINTR
    "  popq %rbx\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  .cfi_restore rbx\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size bobbin_interruptible_call, . - bobbin_interruptible_call\n");

extern "C" {
int64_t bobbin_interruptible_call(const void* word, int64_t number, const int64_t* arguments);
extern const char bobbin_interruptible_call_begin[];
extern const char bobbin_interruptible_call_end[];
extern const char bobbin_interruptible_call_out[];
}

namespace bobbin::internal {

static_assert(EINTR == 4, "the number is in the assembler code");

namespace {

#if defined(__SANITIZE_THREAD__)

// The sanitizer keeps a handler waiting until its thread calls something that it knows, and the
// kernel would begin an interrupted call anew. So here interruptions have a signal that the
// sanitizer does not know of; the handler touches nothing that it watches.
int OwnSignal() noexcept { return SIGRTMAX - 1; }

BOBBIN_NO_SANITIZE_THREAD void OnOwnSignal(int, siginfo_t*, void* context) noexcept {
  InterruptibleCall::LeaveInterrupted(context);
}

void InstallOwnSignal() noexcept {
  using Install = int (*)(int, const struct sigaction*, struct sigaction*);
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  const auto install = reinterpret_cast<Install>(dlsym(libc, "sigaction"));
  BOBBIN_CHECK(install != nullptr, "no sigaction in libc");
  struct sigaction action {};
  action.sa_sigaction = &OnOwnSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  BOBBIN_CHECK(install(OwnSignal(), &action, nullptr) == 0, "that signal cannot be handled");
}

void AdmitSignalHere() noexcept {
  static const bool is_installed = (InstallOwnSignal(), true);
  static_cast<void>(is_installed);
  sigset_t admitted;
  sigemptyset(&admitted);
  sigaddset(&admitted, OwnSignal());
  pthread_sigmask(SIG_UNBLOCK, &admitted, nullptr);
}

void SendSignal(pid_t os_thread) noexcept { syscall(SYS_tgkill, getpid(), os_thread, OwnSignal()); }

#else

// Carriers and platform threads have done that.
void AdmitSignalHere() noexcept {}

void SendSignal(pid_t os_thread) noexcept { ThreadSignal::Send(os_thread); }

#endif

}  // namespace

int64_t InterruptibleCall::Make(long number, const Registers& arguments) noexcept {
  static_assert(sizeof(is_interrupted_) == sizeof(uint32_t), "the word that the code looks at");
  AdmitSignalHere();
  os_thread_.store(static_cast<pid_t>(syscall(SYS_gettid)));
  int64_t result;
  do {
    result = bobbin_interruptible_call(&is_interrupted_, number, arguments.data());
  } while (result == -EINTR && !is_interrupted());
  os_thread_.store(0);
  return result;
}

void InterruptibleCall::Interrupt() noexcept {
  is_interrupted_.store(1);
  if (const pid_t os_thread = os_thread_.load()) SendSignal(os_thread);
}

BOBBIN_NO_SANITIZE_THREAD bool InterruptibleCall::LeaveInterrupted(void* context) noexcept {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<uintptr_t>(registers[REG_RIP]);
  if (at < reinterpret_cast<uintptr_t>(bobbin_interruptible_call_begin) ||
      at >= reinterpret_cast<uintptr_t>(bobbin_interruptible_call_end)) {
    return false;
  }
  // relaxed: it was set before the signal was sent. Not by Atomic, whose functions are watched.
  const auto* const word = reinterpret_cast<const uint32_t*>(registers[REG_RBX]);
  if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0) return false;
  registers[REG_RIP] = static_cast<greg_t>(
      reinterpret_cast<uintptr_t>(bobbin_interruptible_call_out));
  return true;
}

}  // namespace bobbin::internal
