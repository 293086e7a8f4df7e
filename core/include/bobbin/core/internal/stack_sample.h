// SPDX-License-Identifier: Apache-2.0
//
// StackSample: what an OS thread - a carrier, as a rule - is running right now, and its stack.
//
// It is asked by a signal (thread_signal.h), and answers in the handler, if it lets the signal in.
//
// States of the one question there can be at a time, a word of the OS thread's number and
//
//   kIdle      nothing is asked
//   kAsked     the OS thread of that number is asked
//   kAnswering its handler writes the sample
//   kAnswered  the sample may be read
//
//   kIdle      -> kAsked      the asker, who holds the lock
//   kAsked     -> kAnswering  the handler, by an exchange: of several signals one answers
//   kAnswering -> kAnswered   the handler
//   kAsked     -> kIdle       the asker, by an exchange, when its patience is over
//   kAnswered  -> kIdle       the asker
//
// Why a late answer does no harm. An asker who gives up takes the question back by the same
// exchange by which a handler begins: one wins. If it is the handler, the answer is a matter of
// microseconds, and is waited for. A handler that comes later finds no question with its number.
//
//   Called from   Take: OS threads that may block. The rest: any thread.
//   Suspends      Take blocks, up to its patience.
//   Cost          two signals' worth, some 10 us; the asked thread loses about 5 us.

#ifndef BOBBIN_CORE_INTERNAL_STACK_SAMPLE_H_
#define BOBBIN_CORE_INTERNAL_STACK_SAMPLE_H_

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

struct StackSample {
  static constexpr size_t kNameBytes = 48;

  // Who was running: a virtual thread, or the carrier itself; null for an OS thread that has never
  // met bobbin. It may have ended by now.
  const Thread* thread = nullptr;
  Role role = Role::kForeign;
  uint64_t id = 0;                         // A virtual thread's, else 0.
  std::array<char, kNameBytes> name = {};  // The same; perhaps cut.
  Backtrace backtrace;

  // What OS thread `os_thread` of this process is running; nothing if it did not answer in time.
  static std::optional<StackSample> Take(pid_t os_thread,
                                         std::chrono::nanoseconds patience) noexcept;

  // For the signal's handler: answers, if the calling OS thread is asked; `context` is what the
  // handler was given. Whether it was asked.
  static bool Answer(const void* context) noexcept;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_STACK_SAMPLE_H_
