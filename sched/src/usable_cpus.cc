// SPDX-License-Identifier: Apache-2.0

#include "sched/src/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <bobbin/sched/runtime.h>

namespace bobbin {

namespace internal {

namespace {

// Rounded up: a quota of one and a half CPUs keeps two carriers busy. 0: no quota.
int CpusOf(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::clamp<int64_t>((quota + period - 1) / period, 1, 1 << 20));
}

// The quota of one cgroup folder, in either version's files; 0: none.
int QuotaOfFolder(const std::string& folder) {
  std::ifstream unified(folder + "/cpu.max");
  std::string quota_text;
  int64_t period = 0;
  if (unified >> quota_text >> period) {
    return quota_text == "max" ? 0 : CpusOf(std::strtoll(quota_text.c_str(), nullptr, 10), period);
  }
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0;
  if (quota_file >> quota && period_file >> period) return CpusOf(quota, period);
  return 0;
}

// The smallest quota on the way from `path` up to the root of the hierarchy mounted at `mount`.
int QuotaOfPath(const std::string& mount, std::string path) {
  int least = 0;
  while (true) {
    const int quota = QuotaOfFolder(mount + path);
    if (quota != 0) least = least == 0 ? quota : std::min(least, quota);
    if (path.empty() || path == "/") return least;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

int CgroupCpuQuota(const std::string& root) {
  std::ifstream membership(root + "/proc/self/cgroup");
  int least = 0;
  std::string line;
  while (std::getline(membership, line)) {
    // "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    std::string mount = root + "/sys/fs/cgroup";
    if (!controllers.empty()) {
      std::stringstream names(controllers);
      std::string name;
      bool has_cpu = false;
      while (std::getline(names, name, ',')) has_cpu |= name == "cpu";
      if (!has_cpu) continue;
      mount += "/" + controllers;
    }
    const int quota = QuotaOfPath(mount, path);
    if (quota != 0) least = least == 0 ? quota : std::min(least, quota);
  }
  return least;
}

int UsableCpus(int affinity_count, int quota) {
  return std::max(1, quota == 0 ? affinity_count : std::min(affinity_count, quota));
}

}  // namespace internal

int UsableCpus() {
  cpu_set_t usable;
  const int affinity =
      sched_getaffinity(0, sizeof(usable), &usable) == 0 ? CPU_COUNT(&usable) : 1;
  return internal::UsableCpus(affinity, internal::CgroupCpuQuota(""));
}

}  // namespace bobbin
