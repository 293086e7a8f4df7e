// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: a process of this one, until somebody has taken its end.
//
// Its pidfd is readable from the end of the process on, also after the end was taken: any number of
// threads may wait for it, and the first of them to come by takes the end for all.
//
//   Called from   as Process.
//   Suspends      Wait and Stop.

#ifndef BOBBIN_IO_SRC_CHILD_PROCESS_H_
#define BOBBIN_IO_SRC_CHILD_PROCESS_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/mutex.h>
#include <bobbin/io/pipe.h>
#include <bobbin/io/process.h>

#include "io/src/spawn_process.h"

namespace bobbin::io::internal {

class ChildProcess {
 public:
  ChildProcess(const ProcessOptions& options, SpawnedProcess spawned);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Ends it, if it runs.
  ~ChildProcess();

  absl::StatusOr<ProcessEnd> Wait();
  absl::StatusOr<std::optional<ProcessEnd>> TryWait();
  absl::Status Send(int signal);
  absl::StatusOr<ProcessEnd> Stop(std::chrono::nanoseconds budget);

  PipeWriter& input() { return input_; }
  PipeReader& output() { return output_; }
  PipeReader& error() { return error_; }
  pid_t id() const { return id_; }

 private:
  const std::string program_;
  const std::chrono::nanoseconds stop_budget_;
  const pid_t id_;
  const FileDescriptor handle_;
  PipeWriter input_;
  PipeReader output_;
  PipeReader error_;

  Mutex lock_;
  // Once it was taken.
  std::optional<absl::StatusOr<ProcessEnd>> end_ ABSL_GUARDED_BY(lock_);
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_CHILD_PROCESS_H_
