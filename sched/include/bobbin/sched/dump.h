// SPDX-License-Identifier: Apache-2.0
//
// Dump: every virtual thread - name, state, what it waits for and since when, its stack - as text
// or JSON. DumpOnSignal: the same on standard error, on a signal.
//
// Each carrier describes its own threads between two runs, a few of them in each turn, so that the
// others go on meanwhile. A carrier that does not come round in time is asked by a signal what it
// is running, and its other threads are described from outside, without their stacks. So each
// thread is seen at an instant of its own: two of them may contradict each other.
//
// The text puts threads with the same stack together. It names who holds a lock that is waited for,
// and circles of threads that wait for each other. docs/diagnostics.md shows one.
//
//   Called from   any thread. From a virtual thread it parks; the work is done on an OS thread.
//   Suspends      until the dump is done: at most the budget, and the time to write it down.
//   Cancellation  ignored.
//   Errors        none: what cannot be found out is left out, and said to be.
//   Memory        the dump's own. Nothing is written to a parked stack.
//   Cost          a carrier loses about half of its time while it describes its threads, some 5 us
//                 each; nothing while there is no dump.
//
// Example:
//   bobbin::DumpOnSignal(SIGQUIT);                 // kill -QUIT says what everybody does.
//   log << bobbin::Dump({.listed_max = 10});

#ifndef BOBBIN_SCHED_DUMP_H_
#define BOBBIN_SCHED_DUMP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace bobbin {

enum class DumpFormat : uint8_t {
  kText,  // For people; equal stacks together.
  kJson,  // For programs; one entry for each thread.
};

// Which OS threads that are no carriers are asked for their stacks.
enum class OsThreadStacks : uint8_t {
  kNone,  // They are listed without.
  // Those of the runtime's pools. The signal ends some of their system calls early (EINTR): poll,
  // epoll_wait, nanosleep and others that no flag restarts.
  kPlatform,
};

struct DumpOptions {
  DumpFormat format = DumpFormat::kText;
  // How long carriers may take to answer.
  std::chrono::nanoseconds budget = std::chrono::seconds(2);
  // In text, of each group of threads with the same stack, so many are listed.
  size_t listed_max = std::numeric_limits<size_t>::max();
  OsThreadStacks os_thread_stacks = OsThreadStacks::kNone;
};

// All runtimes of the process; Runtime::Dump tells of one.
std::string Dump(const DumpOptions& options = {});

// Has each `signal` that the process gets write a dump to standard error, from an OS thread of its
// own, for the rest of the process's life. Called again, it changes the options.
void DumpOnSignal(int signal, const DumpOptions& options = {.listed_max = 20});

}  // namespace bobbin

#endif  // BOBBIN_SCHED_DUMP_H_
