// SPDX-License-Identifier: Apache-2.0
//
// RunRawServer: what a bare echo server needs around its loop: a CPU, descriptors, a socket that
// listens, an event that stops it, and a report.
//
// A server is anything with
//
//   std::string Serve();   // Until told to stop. Returns the error text, empty if all was well.
//   ServerMeter& meter();
//
// and, if something of it can fail before it serves, `std::string Open()`.

#ifndef BOBBIN_BENCH_BASELINE_RAW_SERVER_H_
#define BOBBIN_BENCH_BASELINE_RAW_SERVER_H_

#include <cstddef>
#include <cstdio>
#include <string>

#include "bench/echo/listener.h"
#include "bench/echo/process_setup.h"
#include "bench/echo/server_meter.h"
#include "bench/echo/server_options.h"
#include "bench/echo/stop_event.h"

namespace bobbin::bench {

// What a server is made of.
struct RawServerParts {
  const ServerOptions& options;
  size_t files_max;  // Descriptors that it may have.
  int listener;
  int stop;  // Readable when it is to end.
};

// Makes a `Server` of the parts, and has it serve until told to stop. Prints the report. Returns
// the program's exit code.
template <typename Server>
int RunRawServer(const char* name, const ServerOptions& options) {
  const auto failed = [name](const std::string& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.c_str());
    return 1;
  };
  if (std::string error = PinToCpu(options.cpu); !error.empty()) return failed(error);
  const size_t files_max = RaiseFileLimit();
  const StopEvent stop(options.seconds);
  if (!stop.fd().is_open()) return failed("stop event: not available");
  const Listener listener = OpenListener(options);
  if (!listener.error.empty()) return failed(listener.error);

  Server server({.options = options,
                 .files_max = files_max,
                 .listener = listener.fd.get(),
                 .stop = stop.fd().get()});
  if constexpr (requires { server.Open(); }) {
    if (std::string error = server.Open(); !error.empty()) return failed(error);
  }
  AnnounceListening(listener);
  if (std::string error = server.Serve(); !error.empty()) return failed(error);
  PrintServerReport(server.meter().Report(name));
  return 0;
}

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_BASELINE_RAW_SERVER_H_
