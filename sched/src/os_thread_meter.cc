// SPDX-License-Identifier: Apache-2.0

#include "sched/src/os_thread_meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace bobbin::internal {

namespace {

// The kernel's name for the CPU clock of a thread that is known by its number; what
// pthread_getcpuclockid computes from a thread's handle.
clockid_t CpuClockOf(pid_t os_thread) noexcept {
  constexpr clockid_t kPerThread = 4;
  constexpr clockid_t kScheduled = 2;
  return ~static_cast<clockid_t>(os_thread) * 8 | kPerThread | kScheduled;
}

// The state letter is the first field after the name, which is in parentheses and may hold some.
OsThreadMeter::Doing DoingIn(std::string_view stat) noexcept {
  const size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos || name_end + 2 >= stat.size()) return OsThreadMeter::Doing::kUnknown;
  switch (stat[name_end + 2]) {
    case 'R':
      return OsThreadMeter::Doing::kRunning;
    case 'S':
    case 'D':
      return OsThreadMeter::Doing::kWaiting;
    default:
      return OsThreadMeter::Doing::kUnknown;
  }
}

}  // namespace

OsThreadMeter::OsThreadMeter(pid_t os_thread)
    : cpu_clock_(CpuClockOf(os_thread)),
      stat_fd_(
          open(fmt::format("/proc/self/task/{}/stat", os_thread).c_str(), O_RDONLY | O_CLOEXEC)) {}

OsThreadMeter::OsThreadMeter(OsThreadMeter&& other) noexcept
    : cpu_clock_(other.cpu_clock_), stat_fd_(std::exchange(other.stat_fd_, -1)) {}

OsThreadMeter::~OsThreadMeter() {
  if (stat_fd_ >= 0) close(stat_fd_);
}

OsThreadMeter::Reading OsThreadMeter::Read() const noexcept {
  Reading reading;
  timespec cpu{};
  if (clock_gettime(cpu_clock_, &cpu) == 0) {
    reading.cpu = std::chrono::seconds(cpu.tv_sec) + std::chrono::nanoseconds(cpu.tv_nsec);
  }
  std::array<char, 256> stat;
  const ssize_t bytes = stat_fd_ < 0 ? -1 : pread(stat_fd_, stat.data(), stat.size(), 0);
  if (bytes > 0) reading.doing = DoingIn({stat.data(), static_cast<size_t>(bytes)});
  return reading;
}

}  // namespace bobbin::internal
