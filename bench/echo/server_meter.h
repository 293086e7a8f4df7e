// SPDX-License-Identifier: Apache-2.0
//
// ServerMeter: counts what one serving thread does and what it costs the process.
//
//   requests   receives that brought data. With several messages in flight on a connection, one
//              receive may bring several: divide by `bytes` then, not by requests.
//   CPU        user and system time of the process, from the first byte received to the last
//              request before connections close; accepting and closing are not charged.
//   accepts    connections that were opened, and CPU from the first of them to the report for each:
//              of use where nothing is received.
//   memory     the peak of resident memory, less what was resident before listening. Nothing but
//              noise below a few hundred connections.
//
//   Called from  one thread. A server with several serving threads has one meter for each and adds
//                up the counts; CPU and memory are the process's, so they are taken from one meter.
//   Cost         OnReceive: two additions and a test.

#ifndef BOBBIN_BENCH_ECHO_SERVER_METER_H_
#define BOBBIN_BENCH_ECHO_SERVER_METER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bobbin::bench {

struct ServerReport {
  std::string_view backend;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  double cpu_us_per_request = 0;
  uint64_t accepts = 0;
  double cpu_us_per_accept = 0;
  uint64_t connections_max = 0;
  uint64_t resident_bytes_per_connection = 0;
};

// Prints `report` as one line, one JSON object, on standard output.
void PrintServerReport(const ServerReport& report);

class ServerMeter {
 public:
  // Notes the resident memory. Make it before listening.
  ServerMeter();

  void OnOpen() {
    if (accepts_ == 0) [[unlikely]]
      StartAccepts();
    ++accepts_;
    connections_max_ = std::max(connections_max_, ++connections_);
  }

  void OnReceive(size_t bytes) {
    if (requests_ == 0) [[unlikely]]
      StartCpu();
    ++requests_;
    bytes_ += bytes;
  }

  void OnClose() {
    --connections_;
    if (requests_ != requests_at_cpu_end_) SampleCpu();
  }

  // The figures so far. REQUIRES: connections still hold what they held when they were served.
  ServerReport Report(std::string_view backend);

 private:
  void StartAccepts();
  void StartCpu();
  void SampleCpu();

  uint64_t requests_ = 0;
  uint64_t bytes_ = 0;
  uint64_t accepts_ = 0;
  uint64_t connections_ = 0;
  uint64_t connections_max_ = 0;
  uint64_t requests_at_cpu_end_ = 0;
  double cpu_seconds_at_first_accept_ = 0;
  double cpu_seconds_at_start_ = 0;
  double cpu_seconds_at_end_ = 0;
  uint64_t resident_bytes_before_ = 0;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_SERVER_METER_H_
