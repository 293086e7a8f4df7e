// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <bobbin/core/status.h>

#include "bench/compare/text.h"

namespace bobbin::compare {
namespace {

template <typename... T>
absl::Status Wrong(fmt::format_string<T...> format, T&&... parts) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format(format, std::forward<T>(parts)...));
}

// The whole of `text` as a number.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  return number;
}

// Adds `value`, unless it is there.
template <typename T>
void AddOnce(std::vector<T>& values, const T& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

absl::StatusOr<std::vector<const Workload*>> ParseWorkloads(const std::vector<std::string>& names) {
  std::vector<const Workload*> workloads;
  for (const std::string& name : names) {
    const Workload* const workload = WorkloadNamed(name);
    if (workload == nullptr) {
      std::vector<std::string_view> known;
      known.reserve(kWorkloads.size());
      for (const Workload* each : kWorkloads) known.push_back(each->name);
      return Wrong("unknown workload '{}'; there are {}", name, Listed(known));
    }
    AddOnce(workloads, workload);
  }
  return workloads;
}

absl::StatusOr<std::vector<Kind>> ParseKinds(std::string_view text) {
  std::vector<Kind> kinds;
  for (const std::string_view name : SplitAtCommas(text)) {
    const std::optional<Kind> kind = KindNamed(name);
    if (!kind.has_value()) return Wrong("--kind '{}': must be virtual or platform", name);
    AddOnce(kinds, *kind);
  }
  return kinds;
}

absl::StatusOr<std::vector<size_t>> ParseConcurrency(std::string_view text) {
  std::vector<size_t> concurrency;
  for (const std::string_view part : SplitAtCommas(text)) {
    const std::optional<size_t> number = ParseNumber<size_t>(part);
    if (!number.has_value() || *number < 1 || *number > Options::kConcurrencyMax) {
      return Wrong("--concurrency '{}': must be a whole number from 1 to {}", part,
                   Options::kConcurrencyMax);
    }
    AddOnce(concurrency, *number);
  }
  return concurrency;
}

absl::StatusOr<double> ParseSeconds(std::string_view text) {
  const std::optional<double> seconds = ParseNumber<double>(text);
  if (!seconds.has_value() || !(*seconds >= Options::kSecondsMin) ||
      *seconds > Options::kSecondsMax) {
    return Wrong("--seconds '{}': must be a number from {} to {}", text, Options::kSecondsMin,
                 Options::kSecondsMax);
  }
  return *seconds;
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv) {
  std::vector<std::string> workloads;
  std::string kinds;
  std::string concurrency;
  std::string seconds;
  Options options;

  CLI::App app;
  app.allow_extras();
  app.add_option("WORKLOAD", workloads);
  const auto add_option = [&app](const char* name, std::string& value) {
    return app.add_option(name, value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  const CLI::Option* const has_kinds = add_option("--kind", kinds);
  const CLI::Option* const has_concurrency = add_option("--concurrency", concurrency);
  const CLI::Option* const has_seconds = add_option("--seconds", seconds);
  add_option("--postgres", options.postgres);
  add_option("--mysql", options.mysql);
  const CLI::Option* const has_json = add_option("--json", options.json_path);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.wants_help = true;
    return options;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view text = error.what();
    return Wrong("{} needs a value", text.substr(0, text.find(':')));
  } catch (const CLI::ParseError& error) {
    return Wrong("{}", error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra != "--") return Wrong("unknown option '{}'; --help lists them", extra);
  }

  if (!workloads.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(options.workloads, ParseWorkloads(workloads));
  }
  if (has_kinds->count() > 0) {
    BOBBIN_ASSIGN_OR_RETURN(options.kinds, ParseKinds(kinds));
  }
  if (has_concurrency->count() > 0) {
    BOBBIN_ASSIGN_OR_RETURN(options.concurrency, ParseConcurrency(concurrency));
  }
  if (has_seconds->count() > 0) {
    BOBBIN_ASSIGN_OR_RETURN(options.seconds, ParseSeconds(seconds));
  }
  if (has_json->count() > 0 && options.json_path.empty()) return Wrong("--json needs a file name");
  return options;
}

std::string HelpText() {
  std::string workloads;
  for (const Workload* workload : kWorkloads) {
    workloads += fmt::format("  {:<9}{}\n", workload->name, workload->title);
  }
  return fmt::format(
      "Does the same work on virtual threads and on platform threads, and shows both side by "
      "side.\n"
      "\n"
      "Usage: bobbin-compare [WORKLOAD...] [OPTION...]\n"
      "\n"
      "Workloads (all of them, unless named):\n"
      "{}"
      "\n"
      "Options:\n"
      "  --kind KIND,...      virtual, platform or both (virtual,platform)\n"
      "  --concurrency N,...  how many threads, each in turn (64,1000,10000); in async, requests\n"
      "  --seconds S          how long to measure each, after a warm-up of S / 4 (2)\n"
      "  --postgres CONNINFO  where PostgreSQL is, as libpq writes it: it wins over the\n"
      "                       environment's BOBBIN_COMPARE_POSTGRES; without either, a server is\n"
      "                       started, for as long as it is needed, if one is installed\n"
      "  --mysql ADDRESS      where MariaDB or MySQL is, as mysql://user:password@host/database;\n"
      "                       the same with BOBBIN_COMPARE_MYSQL\n"
      "  --json FILE          also write every figure, and what machine this is, to FILE\n"
      "  -h, --help           show this page\n"
      "\n"
      "Kinds:\n"
      "  virtual   virtual threads; as many carriers as there are CPUs run them\n"
      "  platform  one thread of the operating system each\n"
      "  In async they are the kinds of named executors, with as many places as are needed at "
      "once.\n"
      "\n"
      "Figures:\n"
      "  operations/s     how many operations all threads together finish in a second\n"
      "  p50, p99, p99.9  latencies that this share of the operations does not exceed\n"
      "  CPU/operation    user and system time of all threads\n"
      "  switches/op      context switches of the operating system, voluntary and forced\n"
      "  memory/thread    resident memory, less that of the process before its threads start; in\n"
      "                   async, of a request and its calls\n"
      "  OS threads       most that existed at once\n"
      "  ratio            how many times better virtual threads are; below 1, platform threads "
      "are\n"
      "\n"
      "Exit status: 0 all went well, or a server is not installed; 1 a workload failed; 2 wrong\n"
      "options; 130 interrupted.\n"
      "\n"
      "Examples:\n"
      "  bobbin-compare\n"
      "  bobbin-compare wait echo --concurrency 1000,5000 --seconds 5\n"
      "  bobbin-compare async --kind virtual\n"
      "  bobbin-compare postgres --postgres 'host=db.example user=app'\n"
      "  bobbin-compare cpu --kind virtual --json cpu.json\n",
      workloads);
}

}  // namespace bobbin::compare
