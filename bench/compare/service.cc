// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/service.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "fmt/format.h"

#include <bobbin/core/status.h>

namespace bobbin::compare {
namespace {

std::string_view LastLineOf(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t line = text.rfind('\n');
  return line == text.npos ? text : text.substr(line + 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Start(const ServiceKind& kind) {
  BOBBIN_ASSIGN_OR_RETURN(TemporaryDirectory folder, TemporaryDirectory::Make());
  auto service = std::make_unique<Service>(kind, std::move(folder));
  if (std::getenv(kind.variable) != nullptr) return service;
  BOBBIN_RETURN_IF_ERROR(service->Call("start"));
  service->is_started_ = true;
  std::string address;
  std::getline(std::ifstream(service->folder_.path() + "/conninfo"), address);
  if (setenv(kind.variable, address.c_str(), 1) != 0) {
    return ErrnoStatus(errno, "set an environment variable");
  }
  return service;
}

Service::~Service() {
  if (!is_started_) return;
  unsetenv(kind_.variable);
  static_cast<void>(Call("stop"));
}

absl::Status Service::Call(const std::string& verb) const {
  // Without a shell between the two: the script has the server end with its caller.
  const std::string command =
      fmt::format("exec '{}' {} '{}' 2>&1", kind_.script, verb, folder_.path());
  std::FILE* const output = popen(command.c_str(), "re");
  if (output == nullptr) return ErrnoStatus(errno, "start a shell");
  std::string text;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) {
    text.push_back(static_cast<char>(c));
  }
  if (pclose(output) == 0) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kUnavailable, LastLineOf(text));
}

}  // namespace bobbin::compare
