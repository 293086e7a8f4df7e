// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/process_setup.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

// The raw servers index tables by descriptor; "unlimited" must not become the size of a table.
constexpr rlim_t kFilesMax = rlim_t{1} << 20;

}  // namespace

std::string CheckCpu(int cpu) {
  const long cpu_count = sysconf(_SC_NPROCESSORS_CONF);
  if (cpu >= -1 && cpu < std::min<long>(cpu_count, CPU_SETSIZE)) return "";
  return "cpu " + std::to_string(cpu) + ": must be from 0 to " + std::to_string(cpu_count - 1) +
         ", or -1 for any";
}

std::string PinToCpu(int cpu) {
  if (cpu < 0) return "";
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<size_t>(cpu), &only);
  if (sched_setaffinity(0, sizeof(only), &only) == 0) return "";
  return "pin to cpu " + std::to_string(cpu) + ": " + ErrorText(errno);
}

size_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t wanted = std::max(limit.rlim_cur, std::min(limit.rlim_max, kFilesMax));
  if (wanted != limit.rlim_cur) {
    const rlimit raised{.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit.rlim_cur = wanted;
  }
  return static_cast<size_t>(std::min(limit.rlim_cur, kFilesMax));
}

}  // namespace bobbin::bench
