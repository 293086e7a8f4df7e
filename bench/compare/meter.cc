// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace bobbin::compare {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double CpuSeconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// How long all CPUs together have not been idle.
double BusySeconds() {
  std::ifstream statistics("/proc/stat");
  std::string label;
  uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, hard = 0, soft = 0, stolen = 0;
  statistics >> label >> user >> nice >> system >> idle >> wait >> hard >> soft >> stolen;
  return static_cast<double>(user + nice + system + hard + soft + stolen) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnSeconds() { return CpuSeconds(RUSAGE_SELF) + CpuSeconds(RUSAGE_CHILDREN); }

}  // namespace

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  figures.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  figures.voluntary_switches = static_cast<uint64_t>(usage.ru_nvcsw);
  figures.involuntary_switches = static_cast<uint64_t>(usage.ru_nivcsw);

  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) figures.resident_bytes = std::stoull(line.substr(6)) * 1024;
    if (line.starts_with("Threads:")) figures.os_threads = std::stoull(line.substr(8));
  }
  return figures;
}

CpuBalance::CpuBalance()
    : begun_(MonotonicNow()), busy_seconds_(BusySeconds()), own_seconds_(OwnSeconds()) {}

double CpuBalance::ShareOfOthers() const {
  const std::chrono::duration<double> time = MonotonicNow() - begun_;
  const double others = (BusySeconds() - busy_seconds_) - (OwnSeconds() - own_seconds_);
  const double all = time.count() * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::clamp(others / all, 0.0, 1.0);
}

}  // namespace bobbin::compare
