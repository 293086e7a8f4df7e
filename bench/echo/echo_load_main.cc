// SPDX-License-Identifier: Apache-2.0
//
// bobbin_echo_load: measures an echo server over TCP.
//
// Exit codes: 0 measured without an error, 1 an error while measuring, 2 wrong options.

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/echo/echo_load.h"
#include "bench/support/command_line.h"

namespace bobbin::bench {
namespace {

void PrintJson(const LoadResult& result) {
  std::printf(
      "{\"requests_per_second\":%.1f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,"
      "\"first_second_p99_us\":%.2f,\"connections\":%" PRIu32 ",\"depth\":%" PRIu32
      ",\"requests\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"client_cpu_share\":%.3f}\n",
      result.requests_per_second, result.p50_us, result.p99_us, result.p999_us,
      result.first_second_p99_us, result.connections, result.depth, result.requests, result.errors,
      result.client_cpu_share);
}

void PrintText(const LoadResult& result) {
  std::printf("connections          %" PRIu32 " x %" PRIu32 "\n", result.connections, result.depth);
  std::printf("requests             %" PRIu64 "\n", result.requests);
  std::printf("requests per second  %.0f\n", result.requests_per_second);
  std::printf("p50                  %.1f us\n", result.p50_us);
  std::printf("p99                  %.1f us\n", result.p99_us);
  std::printf("p99.9                %.1f us\n", result.p999_us);
  std::printf("p99, first second    %.1f us\n", result.first_second_p99_us);
  std::printf("client CPU share     %.3f\n", result.client_cpu_share);
  std::printf("errors               %" PRIu64 "\n", result.errors);
}

int Main(int argc, char** argv) {
  LoadOptions options;
  bool is_json = false;
  bool is_sleeping = false;
  CLI::App app("Measures an echo server over TCP.", "bobbin_echo_load");
  app.add_option("--port", options.port, "port of the server")->required();
  app.add_option("--host", options.host, "numeric address of the server")->capture_default_str();
  app.add_option("--connections", options.connections, "connections held open")
      ->capture_default_str();
  app.add_option("--depth", options.depth, "messages in flight on each")->capture_default_str();
  app.add_option("--bytes", options.message_bytes, "bytes of a message")->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long to measure")->capture_default_str();
  app.add_option("--warmup", options.warmup_seconds, "seconds before that")->capture_default_str();
  app.add_option("--cpu", options.cpu, "CPU to run on, -1 for any")->capture_default_str();
  app.add_flag("--sleep", is_sleeping, "sleep in the kernel between answers, instead of spinning");
  app.add_flag("--json", is_json, "print one JSON object");
  if (const std::optional<int> code = ExitAfterParsing(app, argc, argv)) return *code;
  if (const std::string why = CheckLoadOptions(options); !why.empty()) return Refuse(app, why);

  options.spin = !is_sleeping;
  const LoadResult result = RunEchoLoad(options);
  if (!result.error.empty()) std::fprintf(stderr, "bobbin_echo_load: %s\n", result.error.c_str());
  if (result.requests > 0) is_json ? PrintJson(result) : PrintText(result);
  return result.errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace bobbin::bench

int main(int argc, char** argv) { return bobbin::bench::Main(argc, argv); }
