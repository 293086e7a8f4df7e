// SPDX-License-Identifier: Apache-2.0
//
// Current: which thread - virtual, carrier, platform or foreign - is running this line.
//
// The project has one thread-local variable, a pointer, and this file and current.cc are its only
// readers. A compiler may keep the *address* of a thread-local in a register across a switch of
// stacks; after the switch that may be another OS thread's variable. On x86-64 the pointer is
// therefore read through a volatile assembler statement, which is repeated wherever it is written;
// elsewhere through a function that is never inlined. Nobody keeps what it returns over a wait.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          two loads.

#ifndef BOBBIN_CORE_INTERNAL_CURRENT_H_
#define BOBBIN_CORE_INTERNAL_CURRENT_H_

namespace bobbin::internal {

class Thread;

// The calling OS thread gets a record at its first call: a foreign thread's. See os_thread.h.
Thread& MakeCurrent() noexcept;

#if defined(__x86_64__) && defined(__linux__)

inline Thread* CurrentOrNull() noexcept {
  Thread* thread;
  __asm__ __volatile__(
      "movq bobbin_current_thread@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=&r"(thread)
      :
      : "memory");
  return thread;
}

// Makes `thread` the calling OS thread's current one: at each switch, by the dispatcher.
inline void SetCurrent(Thread* thread) noexcept {
  Thread** offset;
  __asm__ __volatile__(
      "movq bobbin_current_thread@gottpoff(%%rip), %0\n\t"
      "movq %1, %%fs:(%0)"
      : "=&r"(offset)
      : "r"(thread)
      : "memory");
}

#else

Thread* CurrentOrNull() noexcept;
void SetCurrent(Thread* thread) noexcept;

#endif

inline Thread& Current() noexcept {
  Thread* const thread = CurrentOrNull();
  return __builtin_expect(thread != nullptr, 1) ? *thread : MakeCurrent();
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_CURRENT_H_
