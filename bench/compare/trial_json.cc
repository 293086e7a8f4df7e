// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/trial_json.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <bobbin/core/status.h>

namespace bobbin::compare {
namespace {

struct OutcomeName {
  Outcome outcome;
  const char* name;
};
constexpr std::array kOutcomes = {
    OutcomeName{Outcome::kMeasured, "measured"},
    OutcomeName{Outcome::kRanOut, "ran out"},
    OutcomeName{Outcome::kUnavailable, "unavailable"},
    OutcomeName{Outcome::kFailed, "failed"},
    OutcomeName{Outcome::kInterrupted, "interrupted"},
};

// Digits that no measurement has are noise to the reader.
double Tidy(double number) { return std::round(number * 1e4) / 1e4; }

Json FiguresToJson(const Figures& figures) {
  return {
      {"operations", figures.operations},
      {"operations_per_second", Tidy(figures.operations_per_second)},
      {"latency_p50_us", Tidy(figures.latency_p50_us)},
      {"latency_p99_us", Tidy(figures.latency_p99_us)},
      {"latency_p999_us", Tidy(figures.latency_p999_us)},
      {"os_threads_peak", figures.os_threads_peak},
      {"resident_bytes_per_unit", Tidy(figures.resident_bytes_per_unit)},
      {"context_switches_per_operation", Tidy(figures.switches_per_operation())},
      {"voluntary_switches_per_operation", Tidy(figures.voluntary_switches_per_operation)},
      {"involuntary_switches_per_operation", Tidy(figures.involuntary_switches_per_operation)},
      {"cpu_us_per_operation", Tidy(figures.cpu_us_per_operation)},
  };
}

void Read(const Json& json, Figures& figures) {
  json.at("operations").get_to(figures.operations);
  json.at("operations_per_second").get_to(figures.operations_per_second);
  json.at("latency_p50_us").get_to(figures.latency_p50_us);
  json.at("latency_p99_us").get_to(figures.latency_p99_us);
  json.at("latency_p999_us").get_to(figures.latency_p999_us);
  json.at("os_threads_peak").get_to(figures.os_threads_peak);
  json.at("resident_bytes_per_unit").get_to(figures.resident_bytes_per_unit);
  json.at("voluntary_switches_per_operation").get_to(figures.voluntary_switches_per_operation);
  json.at("involuntary_switches_per_operation").get_to(figures.involuntary_switches_per_operation);
  json.at("cpu_us_per_operation").get_to(figures.cpu_us_per_operation);
}

void Read(const Json& json, Trial& trial) {
  json.at("workload").get_to(trial.workload);
  trial.kind = KindNamed(json.at("kind").get<std::string>()).value();
  json.at("concurrency").get_to(trial.concurrency);
  json.at("seconds").get_to(trial.seconds);
  trial.directory = json.value("directory", "");
}

void Read(const Json& json, TrialResult& result) {
  Read(json, result.trial);
  const auto name = json.at("status").get<std::string>();
  for (const OutcomeName& outcome : kOutcomes) {
    if (outcome.name == name) result.outcome = outcome.outcome;
  }
  result.message = json.value("message", "");
  if (result.outcome == Outcome::kMeasured) Read(json.at("figures"), result.figures);
}

template <typename T>
absl::StatusOr<T> Parse(std::string_view text) {
  T value;
  try {
    Read(Json::parse(text), value);
  } catch (const std::exception& error) {
    return MakeStatus(absl::StatusCode::kInvalidArgument, error.what());
  }
  return value;
}

}  // namespace

Json ToJson(const Trial& trial) {
  Json json = {
      {"workload", trial.workload},
      {"kind", KindName(trial.kind)},
      {"concurrency", trial.concurrency},
      {"seconds", trial.seconds},
  };
  if (!trial.directory.empty()) json["directory"] = trial.directory;
  return json;
}

Json ToJson(const TrialResult& result) {
  Json json = ToJson(result.trial);
  json.erase("directory");
  for (const OutcomeName& outcome : kOutcomes) {
    if (outcome.outcome == result.outcome) json["status"] = outcome.name;
  }
  if (!result.message.empty()) json["message"] = result.message;
  json["cpu_share_of_others"] = Tidy(result.cpu_share_of_others);
  if (result.outcome == Outcome::kMeasured) json["figures"] = FiguresToJson(result.figures);
  return json;
}

absl::StatusOr<Trial> ParseTrial(std::string_view text) { return Parse<Trial>(text); }

absl::StatusOr<TrialResult> ParseTrialResult(std::string_view text) {
  return Parse<TrialResult>(text);
}

}  // namespace bobbin::compare
