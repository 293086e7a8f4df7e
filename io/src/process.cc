// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/process.h>

#include "io/src/child_process.h"
#include "io/src/file_call.h"
#include "io/src/printable.h"
#include "io/src/spawn_process.h"

namespace bobbin::io {

using internal::ChildProcess;

namespace {

bool HasZero(const std::string& text) { return text.find('\0') != text.npos; }

bool HasZero(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return HasZero(text); });
}

// What is wrong with them; empty if nothing is.
std::string_view ObjectionTo(const ProcessOptions& options) {
  if (options.program.empty()) return "no program was named";
  if (HasZero(options.program) || HasZero(options.directory) || HasZero(options.arguments) ||
      (options.environment.has_value() && HasZero(*options.environment))) {
    return "a text with a zero byte in it";
  }
  return {};
}

}  // namespace

std::string ProcessEnd::ToString() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* const name = ::sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, name != nullptr ? name : "unknown");
}

Process::Process() = default;
Process::Process(Process&& other) noexcept = default;
Process& Process::operator=(Process&& other) noexcept = default;
Process::~Process() = default;
Process::Process(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}

ChildProcess& Process::child() const {
  BOBBIN_CHECK(child_ != nullptr, "this Process holds nothing");
  return *child_;
}

absl::StatusOr<Process> Process::Spawn(const ProcessOptions& options) {
  const std::string program = internal::Printable(options.program);
  if (const std::string_view objection = ObjectionTo(options); !objection.empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("spawn {}: {}", program, objection));
  }
  internal::SpawnedProcess spawned;
  BOBBIN_RETURN_IF_ERROR(
      internal::RunFileCall({"spawn", program}, [&](internal::InterruptibleCall&) {
        return internal::SpawnProcess(options, spawned);
      }).status());
  return Process(std::make_unique<ChildProcess>(options, std::move(spawned)));
}

absl::StatusOr<ProcessEnd> Process::Wait() { return child().Wait(); }
absl::StatusOr<std::optional<ProcessEnd>> Process::TryWait() { return child().TryWait(); }
absl::Status Process::Send(int signal) { return child().Send(signal); }
absl::StatusOr<ProcessEnd> Process::Stop(std::chrono::nanoseconds budget) {
  return child().Stop(budget);
}

PipeWriter& Process::input() {
  BOBBIN_CHECK(static_cast<bool>(child().input()), "its input is no pipe, or was moved out");
  return child().input();
}
PipeReader& Process::output() {
  BOBBIN_CHECK(static_cast<bool>(child().output()), "its output is no pipe, or was moved out");
  return child().output();
}
PipeReader& Process::error() {
  BOBBIN_CHECK(static_cast<bool>(child().error()), "its errors are no pipe, or were moved out");
  return child().error();
}

pid_t Process::id() const { return child().id(); }

}  // namespace bobbin::io
