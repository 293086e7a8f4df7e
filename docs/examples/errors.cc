// SPDX-License-Identifier: Apache-2.0
//
// Errors: statuses on their way up, and an exception that crosses from one thread to another.

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

namespace {

// [status]
absl::StatusOr<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) {
    return bobbin::MakeStatus(absl::StatusCode::kInvalidArgument,
                              fmt::format("port '{}': must be a number from 1 to 65535", text));
  }
  return port;
}

absl::Status Listen(std::string_view port_text) {
  BOBBIN_ASSIGN_OR_RETURN(const int port, ParsePort(port_text));
  fmt::print("port {}\n", port);
  return absl::OkStatus();
}
// [/status]

// [exception]
bool IsThrown() {
  bobbin::VirtualThread parser = bobbin::Spawn([] { static_cast<void>(std::stoi("seven")); });
  try {
    return parser.Join().ok() && false;
  } catch (const std::invalid_argument&) {
    return true;  // The body's exception, on the thread that joins.
  }
}
// [/exception]

absl::Status Main() {
  BOBBIN_RETURN_IF_ERROR(Listen("7000"));
  const absl::Status wrong = Listen("70000");
  fmt::print("{}\n", wrong.ToString());
  if (!absl::IsInvalidArgument(wrong)) return absl::InternalError("70000 is no port");
  return IsThrown() ? absl::OkStatus() : absl::InternalError("Join must rethrow");
}

}  // namespace

int main() { return bobbin::Run(Main); }
