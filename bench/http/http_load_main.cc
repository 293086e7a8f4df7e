// SPDX-License-Identifier: Apache-2.0
//
// bobbin_http_load: measures an HTTP server, and prints one JSON object.
//
// Exit codes: 0 measured without an error, 1 an error while measuring, 2 wrong options.

#include <cinttypes>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "bench/http/http_load.h"

int main(int argc, char** argv) {
  bobbin::bench::HttpLoadOptions options;
  CLI::App app("Measures an HTTP server.", "bobbin_http_load");
  app.add_option("--port", options.port, "port of the server")->required();
  app.add_option("--host", options.host, "numeric address")->capture_default_str();
  app.add_option("--path", options.path, "what is asked for")->capture_default_str();
  app.add_option("--connections", options.connections, "held open")->capture_default_str();
  app.add_option("--depth", options.depth, "requests in flight on each")->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long to measure")->capture_default_str();
  app.add_option("--warmup", options.warmup_seconds, "seconds before that")->capture_default_str();
  app.add_option("--cpu", options.cpu, "CPU to run on, -1 for any")->capture_default_str();
  app.add_option("--server-pid", options.server_pid, "whose CPU time is measured");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const bobbin::bench::HttpLoadResult result = bobbin::bench::RunHttpLoad(options);
  if (!result.error.empty()) {
    std::fprintf(stderr, "bobbin_http_load: %s\n", result.error.c_str());
    return 1;
  }
  std::printf("{\"requests\":%" PRIu64
              ",\"requests_per_second\":%.1f,\"server_cpu_us_per_request\":%.3f,"
              "\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
              result.requests, result.requests_per_second, result.server_cpu_us_per_request,
              result.p50_us, result.p99_us);
  return 0;
}
