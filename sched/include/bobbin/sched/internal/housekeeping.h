// SPDX-License-Identifier: Apache-2.0
//
// HousekeepingScope: a virtual thread that only keeps house: it closes in time what lies idle, and
// has nothing to do for anybody who waits.
//
// Inside the scope AwaitIdle, and Run behind its main, do not wait for it. A shutdown does, as for
// every other thread.
//
//   Called from   virtual threads.
//   Suspends      never.
//   Cost          an atomic operation at each end.

#ifndef BOBBIN_SCHED_INTERNAL_HOUSEKEEPING_H_
#define BOBBIN_SCHED_INTERNAL_HOUSEKEEPING_H_

namespace bobbin::internal {

class RuntimeCore;

class HousekeepingScope {
 public:
  HousekeepingScope() noexcept;
  HousekeepingScope(const HousekeepingScope&) = delete;
  HousekeepingScope& operator=(const HousekeepingScope&) = delete;
  ~HousekeepingScope();

 private:
  RuntimeCore& runtime_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_HOUSEKEEPING_H_
