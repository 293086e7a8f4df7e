// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/server_meter.h"

#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace bobbin::bench {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Reads a line such as "VmHWM:   1234 kB" of /proc/self/status; 0 if it is not there.
uint64_t StatusBytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != key) continue;
    uint64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

// Makes the peak the present: start-up may have used more for a moment than the server starts with.
void ForgetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";
}

}  // namespace

void PrintServerReport(const ServerReport& report) {
  std::printf("{\"backend\":\"%.*s\",\"requests\":%" PRIu64
              ",\"cpu_us_per_request\":%.3f,"
              "\"connections_max\":%" PRIu64 ",\"resident_bytes_per_connection\":%" PRIu64
              ",\"bytes\":%" PRIu64 ",\"accepts\":%" PRIu64 ",\"cpu_us_per_accept\":%.3f}\n",
              static_cast<int>(report.backend.size()), report.backend.data(), report.requests,
              report.cpu_us_per_request, report.connections_max,
              report.resident_bytes_per_connection, report.bytes, report.accepts,
              report.cpu_us_per_accept);
  std::fflush(stdout);
}

ServerMeter::ServerMeter() {
  ForgetPeak();
  resident_bytes_before_ = StatusBytes("VmRSS:");
}

ServerReport ServerMeter::Report(std::string_view backend) {
  if (requests_ != requests_at_cpu_end_) SampleCpu();
  const uint64_t peak = std::max(StatusBytes("VmHWM:"), resident_bytes_before_);
  ServerReport report{.backend = backend, .requests = requests_, .bytes = bytes_};
  report.connections_max = connections_max_;
  report.accepts = accepts_;
  if (accepts_ > 0) {
    report.cpu_us_per_accept =
        (CpuSeconds() - cpu_seconds_at_first_accept_) * 1e6 / static_cast<double>(accepts_);
  }
  if (requests_ > 0) {
    report.cpu_us_per_request =
        (cpu_seconds_at_end_ - cpu_seconds_at_start_) * 1e6 / static_cast<double>(requests_);
  }
  if (connections_max_ > 0) {
    report.resident_bytes_per_connection = (peak - resident_bytes_before_) / connections_max_;
  }
  return report;
}

void ServerMeter::StartAccepts() { cpu_seconds_at_first_accept_ = CpuSeconds(); }

void ServerMeter::StartCpu() { cpu_seconds_at_start_ = CpuSeconds(); }

void ServerMeter::SampleCpu() {
  cpu_seconds_at_end_ = CpuSeconds();
  requests_at_cpu_end_ = requests_;
}

}  // namespace bobbin::bench
