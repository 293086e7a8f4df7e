// SPDX-License-Identifier: Apache-2.0
//
// Dumps: the runtimes of the process, and what is told of them.
//
// A dump is made on an OS thread of its own: it blocks, and looks through symbol tables, neither of
// which a carrier may do.
//
//   Called from   any thread.
//   Suspends      DumpRuntimes, until it is done. The rest: never.

#ifndef BOBBIN_SCHED_SRC_DUMP_H_
#define BOBBIN_SCHED_SRC_DUMP_H_

#include <string>

#include <bobbin/sched/dump.h>

namespace bobbin::internal {

class RuntimeCore;

// A runtime that has started; and one that is about to be destroyed, which waits for a dump of it.
void RegisterRuntime(RuntimeCore& runtime);
void UnregisterRuntime(RuntimeCore& runtime) noexcept;

// Of `only`, or of all runtimes if that is null.
std::string DumpRuntimes(RuntimeCore* only, const DumpOptions& options);

// What a failed check prints: the stack of the calling thread, then all runtimes - as far as that
// can be had without waiting for what the failing thread may hold.
void DumpForFailedCheck() noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DUMP_H_
