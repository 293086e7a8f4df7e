// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/meter.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace bobbin::compare {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

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

}  // namespace bobbin::compare
