// SPDX-License-Identifier: Apache-2.0
//
// Processes: another program, fed and read through pipes; and a signal that ends a wait.

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/process.h>
#include <bobbin/io/signals.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

using namespace std::chrono_literals;

namespace {

// [filter]
using bobbin::io::StandardStream;

absl::StatusOr<std::string> Sorted(std::string_view lines) {
  bobbin::DeadlineScope scope(10s);
  BOBBIN_ASSIGN_OR_RETURN(auto sort, bobbin::io::Process::Spawn({.program = "sort",
                                                                 .environment = {{"LC_ALL=C"}},
                                                                 .input = StandardStream::kPipe,
                                                                 .output = StandardStream::kPipe}));
  // A pipe holds little: it is filled and emptied at the same time.
  bobbin::VirtualThread feeder = bobbin::Spawn([&, input = std::move(sort.input())]() mutable {
    return input.WriteAll(std::as_bytes(std::span(lines)));
  });
  std::string sorted;
  std::array<char, 4096> buffer;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(size_t count,
                            sort.output().Read(std::as_writable_bytes(std::span(buffer))));
    if (count == 0) break;
    sorted.append(buffer.data(), count);
  }
  BOBBIN_RETURN_IF_ERROR(feeder.Join());
  BOBBIN_ASSIGN_OR_RETURN(bobbin::io::ProcessEnd end, sort.Wait());
  if (!end.ok()) return absl::InternalError("sort: " + end.ToString());
  return sorted;
}
// [/filter]

absl::Status Serve() { return bobbin::SleepFor(1h); }

// [signals]
absl::Status ServeUntilToldToStop() {
  BOBBIN_ASSIGN_OR_RETURN(auto stop, bobbin::io::Signals::Open({SIGTERM, SIGINT}));
  bobbin::VirtualThread server = bobbin::Spawn({.name = "server"}, Serve);
  BOBBIN_ASSIGN_OR_RETURN(int signal, stop.Wait());
  fmt::print("signal {}: the server is asked to stop\n", signal);
  server.Cancel();
  const absl::Status ended = server.Join();
  return absl::IsCancelled(ended) ? absl::OkStatus() : ended;
}
// [/signals]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(const std::string sorted, Sorted("b\nc\na\n"));
  if (sorted != "a\nb\nc\n") return absl::InternalError(sorted);

  // Sent until it is seen: before anybody has asked for it, it is ignored here.
  std::signal(SIGTERM, SIG_IGN);
  bobbin::VirtualThread sender = bobbin::Spawn([]() -> absl::Status {
    while (true) {
      ::kill(::getpid(), SIGTERM);
      BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(1ms));
    }
  });
  return ServeUntilToldToStop();
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
