// SPDX-License-Identifier: Apache-2.0
//
// Embedding: a runtime inside a program whose main thread is its own.

#include <string>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/runtime.h>

namespace {

// [runtime]
absl::Status RunBesideMain() {
  bobbin::Runtime runtime({.carriers = 2});

  bobbin::Event go;
  bobbin::VirtualThread sum = runtime.Spawn({.name = "sum"}, [&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(go.Wait());  // Parks a virtual thread.
    fmt::print("on {} carriers\n", runtime.carriers());
    return absl::OkStatus();
  });

  go.Set();
  return sum.Join();  // Blocks this thread, which is a foreign one.
}  // The runtime's end cancels and awaits whoever is left.
// [/runtime]

// [look]
std::string Look(const bobbin::Runtime& runtime) {
  const bobbin::RuntimeStatistics now = runtime.Statistics();
  return fmt::format("{} live, of these {} parked\n\n{}\n{}", now.live(), now.parked,
                     now.Text(),           // All there is to tell, in a few lines.
                     runtime.Dump());  // What each virtual thread does.
}
// [/look]

absl::Status Main() {
  BOBBIN_RETURN_IF_ERROR(RunBesideMain());

  bobbin::Event end;
  bobbin::Runtime runtime({.carriers = 1});
  bobbin::VirtualThread waits = runtime.Spawn({.name = "waits"}, [&] { return end.Wait(); });
  const std::string seen = Look(runtime);
  fmt::print("{}", seen);
  end.Set();
  BOBBIN_RETURN_IF_ERROR(waits.Join());
  if (seen.find("\"waits\"") == seen.npos) return absl::InternalError("the dump misses a thread");
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Main();
  if (!status.ok()) fmt::print(stderr, "{}\n", status.ToString());
  return status.ok() ? 0 : 1;
}
