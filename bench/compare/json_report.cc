// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/json_report.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include <bobbin/core/status.h>

#include "bench/compare/trial_json.h"

namespace bobbin::compare {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::StatusOr<File> Open(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (file == nullptr) return ErrnoStatus(errno, "--json " + path);
  return file;
}

Json ToJson(const Machine& machine) {
  return {
      {"cpu", machine.cpu},
      {"cpus", machine.cpus},
      {"memory_bytes", machine.memory_bytes},
      {"kernel", machine.kernel},
      {"io", machine.io},
      {"compiler", machine.compiler},
      {"is_optimised", machine.is_optimised},
  };
}

}  // namespace

absl::Status CheckWritable(const std::string& path) { return Open(path, "a").status(); }

absl::Status WriteJsonReport(const std::string& path, const Machine& machine,
                             std::span<const TrialResult> results, bool is_interrupted) {
  Json report = {
      {"program", "bobbin-compare"},
      {"version", machine.version},
      {"time", absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())},
      {"is_interrupted", is_interrupted},
      {"machine", ToJson(machine)},
      {"results", Json::array()},
  };
  for (const TrialResult& result : results) report["results"].push_back(compare::ToJson(result));

  BOBBIN_ASSIGN_OR_RETURN(const File file, Open(path, "w"));
  const std::string text = report.dump(2) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return ErrnoStatus(errno, "--json " + path);
  }
  return absl::OkStatus();
}

}  // namespace bobbin::compare
