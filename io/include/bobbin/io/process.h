// SPDX-License-Identifier: Apache-2.0
//
// Process: another program, started, awaited, and talked to through pipes.
//
// What it inherits: nothing but its three standard streams, its directory and its environment, as
// the options say. All other descriptors are closed, no signal is blocked or ignored, none is
// handled.
//
// A handle owns its process, as VirtualThread owns its thread. One that goes while the process runs
// says so on standard error, then ends it as Stop does: nothing outlives its scope by accident,
// nothing is killed silently, and no zombie is left.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. Wait, TryWait, Send and Stop: any number of threads
//                 at a time. The pipes, moving and destroying: one.
//   Suspends      Spawn, until the program has begun or could not. Wait and Stop, until it has
//                 ended. The destructor likewise, as Stop. The pipes, as PipeReader and PipeWriter.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED; the process goes on. A Spawn that has
//                 begun is waited for, and returns its process. The destructor ignores them.
//   Errors        Spawn: NOT_FOUND: there is no such program, or directory. PERMISSION_DENIED: it
//                 may not be run. INVALID_ARGUMENT: a text has a zero byte. Otherwise as errno's
//                 canonical code. Wait: INTERNAL: somebody else has taken its end, by waiting for
//                 all children or by ignoring SIGCHLD. Send: FAILED_PRECONDITION: it has ended.
//   Lifetime      Must outlive every call. The pipes may be moved out and live longer.
//   Cost          Spawn: a trip to a platform thread, which the kernel stops until the program has
//                 begun; no page of this process is copied. A descriptor, and one a pipe.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto process,
//                           bobbin::io::Process::Spawn({.program = "gzip",
//                                                       .arguments = {"-d"},
//                                                       .input =
//                                                       bobbin::io::StandardStream::kPipe}));
//   BOBBIN_RETURN_IF_ERROR(process.input().WriteAll(bytes));
//   process.input().Close();
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::io::ProcessEnd end, process.Wait());

#ifndef BOBBIN_IO_PROCESS_H_
#define BOBBIN_IO_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/pipe.h>

namespace bobbin::io {

namespace internal {
class ChildProcess;
}

// What a standard stream of the new process is.
enum class StandardStream : uint8_t {
  kInherited,  // That of this process.
  kNull,       // Empty, or into nothing.
  kPipe,       // The other end is here.
};

struct ProcessOptions {
  // A path, or a name that is looked for in the directories of PATH.
  std::string program;
  // Without its own name.
  std::vector<std::string> arguments = {};
  // `NAME=value`, each. Nothing: that of this process.
  std::optional<std::vector<std::string>> environment = std::nullopt;
  // Empty: that of this process. `program` is looked for from there.
  std::string directory = {};
  StandardStream input = StandardStream::kNull;
  StandardStream output = StandardStream::kInherited;
  StandardStream error = StandardStream::kInherited;
  // How long it may take to end by itself when its handle goes.
  std::chrono::nanoseconds stop_budget = std::chrono::seconds(5);
};

// How a process has ended.
struct ProcessEnd {
  int code = 0;    // What it has returned; -1 if a signal ended it.
  int signal = 0;  // Which signal ended it; 0 if none did.

  // Whether it has returned 0.
  bool ok() const { return code == 0; }
  // "exit code 3", or "signal 9 (killed)".
  std::string ToString() const;
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

class Process {
 public:
  // Holds nothing; to be assigned to.
  Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  static absl::StatusOr<Process> Spawn(const ProcessOptions& options);

  // Waits until it has ended. Answers the same from then on.
  absl::StatusOr<ProcessEnd> Wait();
  // How it has ended, if it has; never suspends.
  absl::StatusOr<std::optional<ProcessEnd>> TryWait();
  // Sends it a signal.
  absl::Status Send(int signal);
  // Asks it to end, by SIGTERM; after `budget` ends it, by SIGKILL. Waits until it has ended.
  absl::StatusOr<ProcessEnd> Stop(std::chrono::nanoseconds budget);

  // REQUIRES: StandardStream::kPipe.
  PipeWriter& input();
  PipeReader& output();
  PipeReader& error();

  // As long as Wait has not returned, no other process has this number.
  pid_t id() const;
  // Whether it holds a process, running or not.
  explicit operator bool() const { return child_ != nullptr; }

 private:
  explicit Process(std::unique_ptr<internal::ChildProcess> child);
  internal::ChildProcess& child() const;

  std::unique_ptr<internal::ChildProcess> child_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_PROCESS_H_
