// SPDX-License-Identifier: Apache-2.0
//
// Locals: a value for each virtual thread, one that they inherit, and a stretch in which none may
// be switched.

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/context_value.h>
#include <bobbin/core/local.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

namespace {

// [local]
bobbin::VthreadLocal<std::string> request_name;  // One for each thread, virtual or not.

void Log(std::string_view text) { fmt::print("[{}] {}\n", *request_name, text); }

void Handle(std::string name) {
  *request_name = std::move(name);
  bobbin::Yield();  // Others run on this carrier, with names of their own.
  Log("still the same one");
}
// [/local]

// [context]
constinit const bobbin::ContextValue<std::string> trace_id;  // What it was called for.

std::string TraceOfHere() { return trace_id.Get() == nullptr ? "none" : *trace_id.Get(); }

absl::Status Serve(std::string id) {
  const bobbin::ContextScope scope(trace_id, std::move(id));
  bobbin::TaskGroup group;
  group.Spawn([] { fmt::print("[{}] a child\n", TraceOfHere()); });
  group.Spawn(
      [] { return bobbin::RunBlocking([] { fmt::print("[{}] a file\n", TraceOfHere()); }); });
  return group.Wait();
}
// [/context]

// A C library that answers errors by a variable of the OS thread.
thread_local int library_error = 0;
int LibraryCall() {
  library_error = 7;
  return -1;
}

// [no-suspend]
int CallLibrary() {
  const bobbin::NoSuspendScope together;  // A wait in here would be a bug, and abort.
  return LibraryCall() == 0 ? 0 : library_error;
}
// [/no-suspend]

absl::Status Main() {
  bobbin::TaskGroup group;
  for (const char* name : {"request 1", "request 2"}) {
    group.Spawn([name]() -> absl::Status {
      Handle(name);
      return *request_name == name ? absl::OkStatus() : absl::InternalError("another's name");
    });
  }
  BOBBIN_RETURN_IF_ERROR(group.Wait());
  BOBBIN_RETURN_IF_ERROR(Serve("4711"));
  if (TraceOfHere() != "none") return absl::InternalError("the scope has ended");
  return CallLibrary() == 7 ? absl::OkStatus() : absl::InternalError("not 7");
}

}  // namespace

int main() { return bobbin::Run(Main); }
