// SPDX-License-Identifier: Apache-2.0
//
// bobbin_scale: measures what many virtual threads cost that are all there at once.
//
// Exit codes: 0 measured, 1 the measurement failed, 2 wrong options.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include <CLI/CLI.hpp>

#include "bench/scale/scenario.h"
#include "bench/support/command_line.h"

namespace bobbin::bench {
namespace {

constexpr size_t kStackBytesMin = size_t{16} << 10;
constexpr size_t kStackBytesMax = size_t{1} << 30;
constexpr size_t kRoundsMax = 1000;
constexpr int kCarriersMax = 64;

bool IsPowerOfTen(size_t number) {
  while (number > 1 && number % 10 == 0) number /= 10;
  return number == 1;
}

// What is wrong with the options, or nothing.
std::string Check(const ScenarioOptions& options) {
  const std::vector<std::string> scenarios = {"park", "queue", "sleep", "skynet", "dump"};
  if (std::find(scenarios.begin(), scenarios.end(), options.scenario) == scenarios.end()) {
    return "no scenario '" + options.scenario + "': park, queue, sleep, skynet or dump";
  }
  const auto between = [](const char* name, size_t least, size_t most) {
    return std::string(name) + ": from " + std::to_string(least) + " to " + std::to_string(most);
  };
  const size_t threads_max = RuntimeOptions{}.virtual_threads_max - 1;  // One runs the scenario.
  if (options.threads < 1 || options.threads > threads_max) {
    return between("--threads", 1, threads_max);
  }
  if (options.scenario == "skynet" && !IsPowerOfTen(options.threads)) {
    return "--threads: skynet has 1, 10, 100, 1000, ... leaves";
  }
  if (options.stack_bytes < kStackBytesMin || options.stack_bytes > kStackBytesMax) {
    return between("--stack-bytes", kStackBytesMin, kStackBytesMax);
  }
  if (options.rounds < 1 || options.rounds > kRoundsMax) return between("--rounds", 1, kRoundsMax);
  if (options.carriers < 1 || options.carriers > kCarriersMax) {
    return between("--carriers", 1, kCarriersMax);
  }
  return {};
}

void PrintJson(const ScenarioOptions& options, const ScenarioResult& result) {
  nlohmann::ordered_json json = {
      {"scenario", options.scenario},
      {"threads", options.threads},
      {"stack_bytes", options.stack_bytes},
      {"carriers", options.carriers},
      {"bytes_per_thread", result.bytes_per_thread},
      {"mappings", result.mappings},
      {"mappings_total", result.mappings_total},
      {"peak_rss_bytes", result.peak_resident_bytes},
      {"spawn_ns", nlohmann::json::array()},
      {"release_ns", nlohmann::json::array()},
      {"wall_ms", nlohmann::json::array()},
      {"cpu_ms", nlohmann::json::array()},
  };
  for (const RoundResult& round : result.rounds) {
    json["spawn_ns"].push_back(round.spawn_ns);
    json["release_ns"].push_back(round.release_ns);
    json["wall_ms"].push_back(round.wall_ms);
    json["cpu_ms"].push_back(round.cpu_ms);
    if (options.scenario != "dump") continue;
    json["dump_ms"].push_back(round.dump_ms);
    json["gap_before_ms"].push_back(round.gap_before_ms);
    json["gap_during_ms"].push_back(round.gap_during_ms);
  }
  std::printf("%s\n", json.dump().c_str());
}

void PrintText(const ScenarioOptions& options, const ScenarioResult& result) {
  constexpr double kMebibyte = 1 << 20;
  std::printf("%s, %zu threads, stacks of %zu KiB, carriers: %d\n", options.scenario.c_str(),
              options.threads, options.stack_bytes >> 10, options.carriers);
  std::printf("memory    %.0f bytes a thread, page tables included; at the peak %.0f MiB\n",
              result.bytes_per_thread, static_cast<double>(result.peak_resident_bytes) / kMebibyte);
  std::printf("mappings  %zu came with the threads; with the program's own, %zu\n", result.mappings,
              result.mappings_total);
  std::printf("round     spawn ns   release ns      wall ms       CPU ms\n");
  for (size_t i = 0; i < result.rounds.size(); ++i) {
    const RoundResult& round = result.rounds[i];
    std::printf("%5zu %12.1f %12.1f %12.1f %12.1f\n", i + 1, round.spawn_ns, round.release_ns,
                round.wall_ms, round.cpu_ms);
  }
  if (options.scenario != "dump") return;
  std::printf("round      dump ms   gap before   gap during ms\n");
  for (size_t i = 0; i < result.rounds.size(); ++i) {
    const RoundResult& round = result.rounds[i];
    std::printf("%5zu %12.1f %12.3f %15.3f\n", i + 1, round.dump_ms, round.gap_before_ms,
                round.gap_during_ms);
  }
}

int Main(int argc, char** argv) {
  ScenarioOptions options;
  bool is_json = false;
  CLI::App app("Measures what many virtual threads cost that are all there at once.",
               "bobbin_scale");
  app.add_option("scenario", options.scenario, "park, queue, sleep, skynet or dump")->required();
  app.add_option("--threads", options.threads, "how many; in skynet, the leaves")->required();
  app.add_option("--stack-bytes", options.stack_bytes, "address space of a stack")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "how often; the first meets cold memory")
      ->capture_default_str();
  app.add_option("--carriers", options.carriers, "OS threads that run them")->capture_default_str();
  app.add_flag("--json", is_json, "print one JSON object");
  if (const std::optional<int> code = ExitAfterParsing(app, argc, argv)) return *code;
  if (const std::string why = Check(options); !why.empty()) return Refuse(app, why);

  const absl::StatusOr<ScenarioResult> result = RunScenario(options);
  if (!result.ok()) {
    std::fprintf(stderr, "bobbin_scale: %s\n", std::string(result.status().message()).c_str());
    return 1;
  }
  is_json ? PrintJson(options, *result) : PrintText(options, *result);
  return 0;
}

}  // namespace
}  // namespace bobbin::bench

int main(int argc, char** argv) { return bobbin::bench::Main(argc, argv); }
