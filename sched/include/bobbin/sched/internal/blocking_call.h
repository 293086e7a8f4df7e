// SPDX-License-Identifier: Apache-2.0
//
// BlockingCall: one call of RunBlocking as its pool sees it, and what comes of it.
//
//   Called from   RunAndWait: virtual, platform and foreign threads.
//   Suspends      RunAndWait, until the call has run.
//   Cancellation  as in platform_pool.h; see request_stop.
//   Cost          no allocation: everything lies on the caller's stack.

#ifndef BOBBIN_SCHED_INTERNAL_BLOCKING_CALL_H_
#define BOBBIN_SCHED_INTERNAL_BLOCKING_CALL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bobbin {
class PlatformPool;
}

namespace bobbin::internal {

class PlatformPoolCore;

// Whether a full queue may turn a task away.
enum class Admission : uint8_t {
  kBounded,
  kAlways,  // For work that others wait for already, such as giving back what a pool's caller
            // holds.
};

struct BlockingCall {
  // On a platform thread.
  void (*run)(void* argument) = nullptr;
  // On the caller's thread, once, when the caller is to stop while `run` runs: asks it to end
  // early. Null: there is no way to ask.
  void (*request_stop)(void* argument) = nullptr;
  void* argument = nullptr;
  Admission admission = Admission::kBounded;
};

// Queues `call` and waits until it has run; OK when it has.
absl::Status RunAndWait(PlatformPoolCore& pool, const BlockingCall& call) noexcept;

// A runtime's own pools, so that calls that take long do not hold up those that do not.
enum class BlockingLane : uint8_t {
  kGeneral,  // Named "blocking".
  kSync,     // Named "sync": what waits until a disk has written.
};
inline constexpr size_t kBlockingLanes = 2;

// The calling thread's runtime's pool, made at its first use; null on a thread that may block by
// itself.
PlatformPool* PoolUnlessMayBlock(BlockingLane lane);

// What a body that returns T gives its caller.
template <typename T>
struct BlockingResultOf {
  static_assert(std::is_object_v<T>, "a body returns a value, a status or nothing");
  using type = absl::StatusOr<std::remove_cv_t<T>>;
};
template <>
struct BlockingResultOf<void> {
  using type = absl::Status;
};
template <>
struct BlockingResultOf<absl::Status> {
  using type = absl::Status;
};
template <typename T>
struct BlockingResultOf<absl::StatusOr<T>> {
  using type = absl::StatusOr<T>;
};
template <typename F>
using BlockingResult =
    typename BlockingResultOf<std::invoke_result_t<std::remove_reference_t<F>&>>::type;

// Calls `body` and returns what RunBlocking returns for it.
template <typename F>
BlockingResult<F> CallBlocking(F& body) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    body();
    return absl::OkStatus();
  } else {
    return body();
  }
}

// A body and the place for its result.
template <typename F>
class BlockingOutcome {
 public:
  explicit BlockingOutcome(F& body) : body_(body) {}

  // Runs the body and keeps what it returns.
  void Produce() { result_.emplace(CallBlocking(body_)); }
  // REQUIRES: Produce has returned.
  BlockingResult<F> Take() && { return *std::move(result_); }

 private:
  F& body_;
  std::optional<BlockingResult<F>> result_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_BLOCKING_CALL_H_
