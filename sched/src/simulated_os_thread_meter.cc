// SPDX-License-Identifier: Apache-2.0
//
// The meter of a simulation: in the place of os_thread_meter.cc. Simulated OS threads use no CPU
// time, and the kernel knows nothing of them.

#include "sched/src/os_thread_meter.h"

namespace bobbin::internal {

OsThreadMeter::OsThreadMeter(pid_t) : cpu_clock_(0), stat_fd_(-1) {}

OsThreadMeter::OsThreadMeter(OsThreadMeter&& other) noexcept
    : cpu_clock_(other.cpu_clock_), stat_fd_(other.stat_fd_) {}

OsThreadMeter::~OsThreadMeter() = default;

OsThreadMeter::Reading OsThreadMeter::Read() const noexcept { return {}; }

}  // namespace bobbin::internal
