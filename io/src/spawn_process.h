// SPDX-License-Identifier: Apache-2.0
//
// SpawnProcess: posix_spawn(3), with what the new process is to have.
//
//   Called from   platform and foreign threads.
//   Suspends      blocks the OS thread until the program has begun.

#ifndef BOBBIN_IO_SRC_SPAWN_PROCESS_H_
#define BOBBIN_IO_SRC_SPAWN_PROCESS_H_

#include <sys/types.h>

#include <array>

#include <bobbin/io/process.h>

#include "io/src/file_descriptor.h"
#include "io/src/result.h"

namespace bobbin::io::internal {

struct SpawnedProcess {
  pid_t id = -1;
  FileDescriptor handle;                  // A pidfd: readable when it has ended.
  std::array<FileDescriptor, 3> streams;  // This side's ends of pipes.
};

// 0, or a negative error number: then there is no process.
Result SpawnProcess(const ProcessOptions& options, SpawnedProcess& process);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_SPAWN_PROCESS_H_
