// SPDX-License-Identifier: Apache-2.0
//
// TaskOptions: how a task is to be run - its name, when, under which lock, how often again.
//
//   Called from   any thread: these are values.
//   Suspends      never.
//
// Example:
//   bobbin::Async("mail", {.name = "receipt", .retry = {.attempts_max = 5}}, SendReceipt, order);

#ifndef BOBBIN_SCHED_TASK_OPTIONS_H_
#define BOBBIN_SCHED_TASK_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/core/mutex.h>

namespace bobbin {

// Some codes of a status, without an allocation: every task has them among its options.
class StatusCodes {
 public:
  constexpr StatusCodes(std::initializer_list<absl::StatusCode> codes) {  // NOLINT: .codes = {...}
    for (const absl::StatusCode code : codes) bits_ |= BitOf(code);
  }
  constexpr bool Contains(absl::StatusCode code) const { return (bits_ & BitOf(code)) != 0; }

 private:
  static constexpr uint32_t BitOf(absl::StatusCode code) {
    return uint32_t{1} << (static_cast<uint32_t>(code) % 32);
  }

  uint32_t bits_ = 0;
};

// Whether a body that has failed is run again, on a thread of its executor, and when. Between two
// attempts it holds neither thread nor place. A body that throws is not run again.
struct RetryOptions {
  // With the first. 1: it is not run again.
  size_t attempts_max = 1;
  // Before the second attempt; it grows by `growth` with each one after it, up to `backoff_max`.
  std::chrono::nanoseconds backoff = std::chrono::milliseconds(100);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(10);
  double growth = 2.0;
  // Each is longer or shorter by up to this part of it, so that what failed at the same time does
  // not come again at the same time. From 0 to 1.
  double jitter = 0.25;
  // 0: another one for each task. Tasks with the same seed wait equally long.
  uint64_t seed = 0;
  // Which errors pass by themselves.
  StatusCodes codes = {absl::StatusCode::kUnavailable, absl::StatusCode::kAborted};
};

// Whether the body has a span of its own (span.h), around each attempt.
enum class TaskSpan : uint8_t {
  kOwn,   // If its trace is kept.
  kNone,  // Its spans are children of its submitter's: it is not worth one, or has a better one.
};

struct TaskOptions {
  // For people: dumps, messages. Copied. Empty is fine.
  std::string_view name = {};
  // It is given to the executor's threads not before this has passed.
  std::chrono::nanoseconds delay = std::chrono::nanoseconds::zero();
  // Held while the body runs: of the bodies with the same mutex, one runs at a time. The body has
  // its thread, or its place, while it waits for it. Must outlive the task.
  Mutex* held = nullptr;
  RetryOptions retry = {};
  TaskSpan span = TaskSpan::kOwn;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_TASK_OPTIONS_H_
