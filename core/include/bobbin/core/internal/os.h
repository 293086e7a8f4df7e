// SPDX-License-Identifier: Apache-2.0
//
// Os: what core asks the operating system for on behalf of the calling OS thread, besides the futex
// (futex.h). A simulation brings its own.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_CORE_INTERNAL_OS_H_
#define BOBBIN_CORE_INTERNAL_OS_H_

#include <cstddef>
#include <cstdint>

namespace bobbin::internal {

// Lets other OS threads run first.
void GiveUpSlice() noexcept;

// One turn of a spin.
void PauseSpin() noexcept;

// Has `exit(argument)` called when the calling OS thread ends. `exit` is the same at every call.
void AtThreadExit(void (*exit)(void*), void* argument) noexcept;

// How many OS threads the process has; where nobody knows, the largest number.
uint64_t CountOsThreads() noexcept;

// The calling OS thread's own stack.
struct StackBounds {
  char* base = nullptr;
  size_t bytes = 0;
};
StackBounds OwnStack() noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_OS_H_
