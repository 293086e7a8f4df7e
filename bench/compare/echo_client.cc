// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/echo_client.h"

#include <cstdio>
#include <exception>
#include <string>

#include "fmt/format.h"

#include <bobbin/core/status.h>

#include "bench/compare/trial_json.h"

namespace bobbin::compare {
namespace {

constexpr std::chrono::milliseconds kLook{100};

Json OptionsToJson(const bench::LoadOptions& options) {
  return {{"port", options.port},
          {"connections", options.connections},
          {"seconds", options.seconds},
          {"warmup_seconds", options.warmup_seconds},
          {"cpu", options.cpu}};
}

Json ResultToJson(const bench::LoadResult& result) {
  return {{"requests", result.requests}, {"requests_per_second", result.requests_per_second},
          {"p50_us", result.p50_us},     {"p99_us", result.p99_us},
          {"p999_us", result.p999_us},   {"errors", result.errors},
          {"error", result.error}};
}

}  // namespace

absl::StatusOr<EchoClient> EchoClient::Start(const bench::LoadOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(
      ChildProcess process,
      ChildProcess::Start({std::string(kEchoClientFlag), OptionsToJson(options).dump()}));
  return EchoClient(std::move(process));
}

absl::StatusOr<bench::LoadResult> EchoClient::Finish(absl::FunctionRef<bool()> goes_on) {
  while (process_.ReadFor(kLook)) {
    if (!goes_on()) return MakeStatus(absl::StatusCode::kAborted, "the load was broken off");
  }
  BOBBIN_RETURN_IF_ERROR(process_.Wait());
  bench::LoadResult result;
  try {
    const Json json = Json::parse(process_.output());
    json.at("requests").get_to(result.requests);
    json.at("requests_per_second").get_to(result.requests_per_second);
    json.at("p50_us").get_to(result.p50_us);
    json.at("p99_us").get_to(result.p99_us);
    json.at("p999_us").get_to(result.p999_us);
    json.at("errors").get_to(result.errors);
    json.at("error").get_to(result.error);
  } catch (const std::exception& error) {
    return MakeStatus(absl::StatusCode::kInternal, error.what());
  }
  if (result.errors > 0) return MakeStatus(absl::StatusCode::kUnavailable, result.error);
  return result;
}

int RunEchoClientHere(std::string_view options) {
  ChildProcess::EndWithParent();
  bench::LoadOptions load;
  try {
    const Json json = Json::parse(options);
    json.at("port").get_to(load.port);
    json.at("connections").get_to(load.connections);
    json.at("seconds").get_to(load.seconds);
    json.at("warmup_seconds").get_to(load.warmup_seconds);
    json.at("cpu").get_to(load.cpu);
  } catch (const std::exception&) {
    fmt::print(stderr, "bobbin-compare: {} is for the program itself\n", kEchoClientFlag);
    return 2;
  }
  fmt::print("{}\n", ResultToJson(bench::RunEchoLoad(load)).dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace bobbin::compare
