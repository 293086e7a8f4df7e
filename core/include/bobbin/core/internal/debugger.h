// SPDX-License-Identifier: Apache-2.0
//
// DebuggerView: where a debugger finds the virtual threads of this build.
//
// core/gdb/bobbin-gdb.py reads it, in a live process or in a core file, by the name of one symbol:
// the program needs a symbol table, but no debug information. Whoever changes what a field means
// raises the version, and teaches the script.
//
//   Called from   Add, Remove: any thread.
//   Suspends      never.

#ifndef BOBBIN_CORE_INTERNAL_DEBUGGER_H_
#define BOBBIN_CORE_INTERNAL_DEBUGGER_H_

#include <cstdint>

namespace bobbin::internal {

class TaskPool;

// Numbers of eight bytes, in the order in which the script names them. Unless their names say
// something else they are offsets in bytes.
struct DebuggerView {
  static DebuggerView view;

  // A pool that comes, and one that goes.
  static void Add(TaskPool& pool) noexcept;
  static void Remove(TaskPool& pool) noexcept;

  uint64_t version;
  TaskPool* first_pool;  // Guarded by a lock that a debugger need not take.
  uint64_t pool_next;
  uint64_t pool_chunks;
  uint64_t pool_carved;
  uint64_t chunk_bytes;
  uint64_t chunk_head_bytes;
  uint64_t task_bytes;
  uint64_t tasks_per_chunk;
  uint64_t task_state;
  uint64_t task_context;
  uint64_t task_dispatcher;
  uint64_t task_wait;
  uint64_t task_stack;
  uint64_t task_id;
  uint64_t task_parent;
  uint64_t task_name;
  uint64_t reason_kind;
  uint64_t reason_object;
  uint64_t reason_since;
  uint64_t kind_name;
  uint64_t kind_object;
  uint64_t kind_holder_word;
  uint64_t dispatcher_stack_pool;
  uint64_t stack_pool_stack_bytes;
  uint64_t task_ending;
  uint64_t size_class_shift;
  uint64_t size_class_bits;
  uint64_t size_min;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_DEBUGGER_H_
