// SPDX-License-Identifier: Apache-2.0
//
// Spawn: starts a virtual thread and returns its handle.
//
// The new thread runs later, on the caller's carrier or on an idle one, and stays on the carrier
// where it first runs. Spawned threads start newest first, which keeps a tree of a million of them
// in a handful of stacks; a stated share of starts goes to the oldest (see docs/guarantees.md).
//
// With `migrates` the body promises to keep no address of anything thread-local over a wait, nor
// what is found by one: `errno`, a `thread_local`, the error queue of a library, the lock of an OS
// mutex, a `std::this_thread::get_id()`. When it is ready and its carrier is busy, an idle one may
// take it, again and again. The compiler is a party to the promise: it may remember the address of
// a thread-local that one function names before and after a wait, so name it in a function that is
// not inlined. What is the library's goes along: scopes, locks, `VthreadLocal`s, exceptions,
// rounding modes.
//
//   Called from   virtual threads, and platform threads of a runtime's pools. A foreign thread has
//                 no runtime: it calls Runtime::Spawn.
//   Suspends      Spawn, at RuntimeOptions::virtual_threads_max, until another virtual thread has
//                 ended (or the runtime is shut down). TrySpawn never.
//   Cancellation  Spawn ignores it, and deadlines: it has no way to tell. Where that will not do,
//                 use TrySpawn.
//   Errors        TrySpawn returns RESOURCE_EXHAUSTED at the limit of live virtual threads, and
//                 when the system has no address space or guard pages for more stacks (of that
//                 size). What Spawn starts then waits for the stack of another thread that ends.
//                 A size that is none: INVALID_ARGUMENT from TrySpawn; Spawn aborts.
//   Order         At the limit first come, first served. Threads that all wait there for their own
//                 children to be started wait for ever: a deadlock, which is reported as one. Let
//                 those who spawn be others than those who fill the limit, or use TrySpawn.
//   Cost          about the price of a heap allocation; the stack is bound when the thread first
//                 runs. With `migrates`, each wait and each yield costs some 30 ns more.
//
// A body returns nothing or absl::Status, and is always entered: cancelled before it started, it
// sees that at its first wait.
//
// Example:
//   bobbin::VirtualThread greeter = bobbin::Spawn({.name = "greeter"}, [] { Greet(); });
//   return greeter.Join();

#ifndef BOBBIN_SCHED_SPAWN_H_
#define BOBBIN_SCHED_SPAWN_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include <bobbin/core/internal/body.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/vthread.h>

namespace bobbin {

class Runtime;

// Where a new virtual thread is offered first. An idle carrier may take it from there.
enum class Placement : unsigned char {
  kHere,    // The caller's carrier: what the spawner just touched is warm there.
  kSpread,  // Each carrier in turn: for threads that live long, such as one per connection.
};

struct SpawnOptions {
  // For people: dumps, messages. Copied. Empty is fine.
  std::string_view name = {};
  // Empty: kHere, or what the TaskGroup says.
  std::optional<Placement> placement = std::nullopt;
  // Whether it may go on on another carrier after each wait: see above.
  bool migrates = false;
  // Address space of its stack, its guard page included: from 16 KiB to 64 MiB, rounded up to a
  // power of two. 0: RuntimeOptions::stack_bytes. For the few that recurse deeply, or have large
  // arrays; only touched pages cost memory, so there is little to gain by less.
  size_t stack_bytes = 0;
};

namespace internal {

// The runtime of the calling thread; aborts on a foreign thread.
Runtime& CurrentRuntime();

// A block prepared for a new virtual thread of the calling thread's runtime, or of `runtime`; null,
// or an abort, at the limit.
Task* TryNewTask(const SpawnOptions& options);
Task* TryNewTask(Runtime& runtime, const SpawnOptions& options);
Task& NewTask(const SpawnOptions& options);
Task& NewTask(Runtime& runtime, const SpawnOptions& options);
// Makes it runnable. The body has been built.
void Launch(Task& task, Placement placement) noexcept;
void Launch(Runtime& runtime, Task& task, Placement placement) noexcept;
// Why one that tries has returned null.
absl::Status WhyNotSpawned(Runtime& runtime, const SpawnOptions& options);

}  // namespace internal

// Starts a virtual thread that runs `body`.
template <internal::BodyCallable F>
VirtualThread Spawn(const SpawnOptions& options, F&& body) {
  internal::Task& task = internal::NewTask(options);
  task.set_body(internal::Body::Emplace(task.body_storage(), std::forward<F>(body)));
  internal::Launch(task, options.placement.value_or(Placement::kHere));
  return VirtualThread(task);
}
template <internal::BodyCallable F>
VirtualThread Spawn(F&& body) {
  return Spawn(SpawnOptions{}, std::forward<F>(body));
}

// The same, for servers that admit load: RESOURCE_EXHAUSTED at the limit, and `body` is dropped.
template <internal::BodyCallable F>
absl::StatusOr<VirtualThread> TrySpawn(const SpawnOptions& options, F&& body) {
  internal::Task* const task = internal::TryNewTask(options);
  if (task == nullptr) return internal::WhyNotSpawned(internal::CurrentRuntime(), options);
  task->set_body(internal::Body::Emplace(task->body_storage(), std::forward<F>(body)));
  internal::Launch(*task, options.placement.value_or(Placement::kHere));
  return VirtualThread(*task);
}

}  // namespace bobbin

#endif  // BOBBIN_SCHED_SPAWN_H_
