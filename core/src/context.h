// SPDX-License-Identifier: Apache-2.0
//
// Context: the switch from one stack to another, over Boost.Context's raw functions.
//
// A switch stores the leaver's context at `*save`, from the stack that is arrived at: only there
// has the leaver been saved for good.
//
// Why there are lines of assembler around jump_fcontext. A processor predicts a return by a stack
// of the calls it has seen. jump_fcontext is called, but leaves by a jump, so every plain use of it
// leaves one call on that stack without its return - and every return on the new stack, up to the
// user's own code, is then predicted to go where the one above it should. Entered by a jump and
// left by a return, the switch keeps calls and returns in step: threads that wait at the same place
// return along the same path, as predicted. That halves the time of a yield
// (bench/core/switch_bench.cc).
//
//   Called from   the dispatcher.
//   Suspends      the calling stack, until somebody jumps to what was stored at `*save`.
//   Cost          about that of a bare jump_fcontext.

#ifndef BOBBIN_CORE_SRC_CONTEXT_H_
#define BOBBIN_CORE_SRC_CONTEXT_H_

#include <cstddef>

#include <boost/context/detail/fcontext.hpp>

#include "core/src/sanitizer.h"

#if defined(__x86_64__) && defined(__linux__)

// In context.cc. The name is not mangled, for the assembler's sake.
extern "C" void bobbin_switch_context(void* target, void** save) noexcept;

#endif

namespace bobbin::internal::context {

// What a new stack's first function is given: who came, and where to store their context.
using Arrival = boost::context::detail::transfer_t;

BOBBIN_SWITCH_PATH inline void StoreLeaver(const Arrival& arrival) noexcept {
  *static_cast<void**>(arrival.data) = arrival.fctx;
}

BOBBIN_SWITCH_PATH inline void SwitchTo(void* target, void** save) noexcept {
#if defined(__x86_64__) && defined(__linux__)
  bobbin_switch_context(target, save);
#else
  StoreLeaver(boost::context::detail::jump_fcontext(target, save));
#endif
}

// For a stack that will not be continued: what is stored at `*save` is of no use. Not a call, for
// the same reason.
[[noreturn]] BOBBIN_SWITCH_PATH inline void LeaveFor(void* target, void** save) noexcept {
#if defined(__x86_64__) && defined(__linux__)
  __asm__ __volatile__("jmp jump_fcontext@PLT" : : "D"(target), "S"(save) : "memory");
#else
  boost::context::detail::jump_fcontext(target, save);
#endif
  __builtin_unreachable();
}

// A context that calls `entry` on the stack of `bytes` below `top`. `entry` must call StoreLeaver
// first and must not return.
inline void* Make(char* top, size_t bytes, void (*entry)(Arrival)) noexcept {
  return boost::context::detail::make_fcontext(top, bytes, entry);
}

}  // namespace bobbin::internal::context

#endif  // BOBBIN_CORE_SRC_CONTEXT_H_
