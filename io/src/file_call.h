// SPDX-License-Identifier: Apache-2.0
//
// RunFileCall: calls to a file, made where they may block.
//
// A virtual thread has them made by a platform thread of its runtime and waits; a platform or
// foreign thread makes them itself. The queue is not bounded: who waits in it lies on the stack of
// a thread that exists already.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      a virtual thread, until the calls are made.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED. Calls that wait for their turn are not made. One
//                 that is being made is interrupted where the kernel can do that, as with a pipe
//                 or a terminal, and waited for in any case: it uses the caller's memory.
//   Errors        a negative result of the body as ResultStatus has it. RESOURCE_EXHAUSTED: the
//                 system gives no thread. UNAVAILABLE: the runtime is shut down.
//   Cost          a round trip between two OS threads, or none.

#ifndef BOBBIN_IO_SRC_FILE_CALL_H_
#define BOBBIN_IO_SRC_FILE_CALL_H_

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/interruptible_call.h>
#include <bobbin/sched/internal/blocking_call.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

using bobbin::internal::BlockingLane;
using bobbin::internal::InterruptibleCall;

// What an error says was tried: "<verb> <path>".
struct FileOperation {
  std::string_view verb;
  std::string_view path;
};

// Makes its system calls by the object; a negative result ends it.
using FileBody = absl::FunctionRef<Result(InterruptibleCall&)>;

// What the body returned, if not negative.
absl::StatusOr<size_t> RunFileCall(const FileOperation& operation, FileBody body,
                                   BlockingLane lane = BlockingLane::kGeneral);
// The same for a body that cleans up: it runs in any case, and to its end.
absl::Status RunFileCallAlways(const FileOperation& operation, FileBody body);

absl::Status FileStatus(Result result, const FileOperation& operation);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_FILE_CALL_H_
