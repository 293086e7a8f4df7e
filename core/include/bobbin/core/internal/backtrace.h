// SPDX-License-Identifier: Apache-2.0
//
// Backtrace: the return addresses of a stack - one's own, that of a thread that is parked, or that
// of an OS thread that runs - and their names.
//
// All are found by what the compiler notes for exceptions, not by frame pointers: they are right in
// optimised builds, and in code that nobody compiled for it. A parked stack is read where it lies
// and never written to: looking at a hundred thousand of them touches no new page. It must stay
// parked meanwhile, so its own carrier walks it, between two runs.
//
// A walk over a virtual thread's stack ends at its first frame, which says so (dispatcher.cc).
//
//   Called from   OfCaller: any thread, also in a signal's handler once PrepareUnwinder has run.
//                 OfParked: the carrier of the thread that is parked. OfInterrupted: a handler.
//   Suspends      never.
//   Cost          about 0.3 us a frame; no allocation, no lock. AppendFrame: a look into the
//                 symbols of the program, up to milliseconds; no allocation but the text's.

#ifndef BOBBIN_CORE_INTERNAL_BACKTRACE_H_
#define BOBBIN_CORE_INTERNAL_BACKTRACE_H_

#include <cstddef>
#include <span>
#include <string>

namespace bobbin::internal {

class Backtrace {
 public:
  // Deeper stacks lose their first callers.
  static constexpr size_t kFramesMax = 64;

  Backtrace() = default;

  // The caller's: its own address is the first.
  [[gnu::noinline]] static Backtrace OfCaller() noexcept;
  // That of a thread that was left at `context`; see Thread::parked_context().
  static Backtrace OfParked(const void* context) noexcept;
  // That of the line which a signal has interrupted; `context` is what the handler was given.
  [[gnu::noinline]] static Backtrace OfInterrupted(const void* context) noexcept;

  // Innermost first.
  std::span<const void* const> frames() const noexcept { return {frames_, count_}; }
  bool empty() const noexcept { return count_ == 0; }
  // Whether there were more than fit.
  bool is_cut() const noexcept { return is_cut_; }

 private:
  struct Walk;

  size_t count_ = 0;
  bool is_cut_ = false;
  const void* frames_[kFramesMax] = {};
};

// Loads what a walk needs. A walk in a handler must not be the first one of the process.
void PrepareUnwinder() noexcept;

// The name of the function that a frame is in, without its parameters; empty when it has none.
std::string FrameName(const void* frame);
// One frame as a line of a report: `0x55e0c81f2a10 bobbin::Mutex::LockSlow()`.
void AppendFrame(std::string& text, const void* frame);

// The same for a process that is about to end, in a handler: to standard error, without allocating.
void WriteFrames(const Backtrace& backtrace) noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_BACKTRACE_H_
