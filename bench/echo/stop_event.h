// SPDX-License-Identifier: Apache-2.0
//
// StopEvent: a descriptor that becomes readable when a raw server should end: at SIGTERM, at
// SIGINT, or when its time is up. A descriptor, because a signal handler's flag could be set
// between the check and the wait, and the server would then sleep on.

#ifndef BOBBIN_BENCH_ECHO_STOP_EVENT_H_
#define BOBBIN_BENCH_ECHO_STOP_EVENT_H_

#include "bench/echo/unique_fd.h"

namespace bobbin::bench {

class StopEvent {
 public:
  // Blocks the two signals in the calling thread, for good. `seconds` 0: no time limit.
  explicit StopEvent(double seconds);

  // Readable when it is time to stop. Not open if the kernel refused one of its parts.
  const UniqueFd& fd() const { return either_; }

 private:
  UniqueFd signal_;
  UniqueFd timer_;
  UniqueFd either_;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_STOP_EVENT_H_
