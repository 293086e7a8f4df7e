// SPDX-License-Identifier: Apache-2.0
//
// OsThreadMeter: what another OS thread of this process is doing, as the kernel sees it: how much
// CPU time it has used, and whether it waits in the kernel.
//
//   Called from   one OS thread at a time, any.
//   Suspends      never.
//   Errors        Without /proc it is not known whether a thread waits; CPU times are.
//   Lifetime      It may outlive the OS thread, which then does nothing. Holds a descriptor.
//   Cost          two system calls, some 15 us.

#ifndef BOBBIN_SCHED_SRC_OS_THREAD_METER_H_
#define BOBBIN_SCHED_SRC_OS_THREAD_METER_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace bobbin::internal {

class OsThreadMeter {
 public:
  enum class Doing : uint8_t {
    kRunning,  // It runs, or waits for a CPU.
    kWaiting,  // In the kernel, for whatever it is.
    kUnknown,  // Stopped by a debugger, ended, or nobody says.
  };
  struct Reading {
    std::chrono::nanoseconds cpu{0};
    Doing doing = Doing::kUnknown;
  };

  explicit OsThreadMeter(pid_t os_thread);
  OsThreadMeter(OsThreadMeter&& other) noexcept;
  OsThreadMeter& operator=(OsThreadMeter&&) = delete;
  ~OsThreadMeter();

  Reading Read() const noexcept;

 private:
  clockid_t cpu_clock_;
  int stat_fd_;  // Open all the time, so that nobody's descriptors change numbers; -1: none.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_OS_THREAD_METER_H_
