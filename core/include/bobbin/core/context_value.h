// SPDX-License-Identifier: Apache-2.0
//
// ContextValue: a value that a thread passes on to what it starts - a trace's number, a tenant, the
// fields of a log line. ContextScope sets it for a scope.
//
// A body that is started - by Spawn, a TaskGroup, a Runtime, RunBlocking, Submit, or Then - sees
// the values that were in force where it was started, until it ends, whatever its starter does
// meanwhile. To give each thread a value of its own use VthreadLocal; what a function needs to do
// its work, pass as an argument.
//
//   Called from   any thread, except a carrier's own stack; a scope must end on the thread that
//                 began it, innermost first.
//   Suspends      never; a value's destructor may.
//   Memory        A value does not change, so it can be read by all threads that have it.
//   Lifetime      A value lives as long as its scope and every body that was started in it. Its
//                 last owner destroys it. The ContextValue itself must outlive them: make it
//                 static.
//   Cost          A scope: one allocation. Get: a search among the values in force. Starting a
//                 body: an increment and a decrement; nothing without a value.
//
// Example:
//   constinit const bobbin::ContextValue<TraceId> trace_id;  // At namespace scope.
//
//   const bobbin::ContextScope scope(trace_id, request.trace_id);
//   group.Spawn([] { Log(*trace_id.Get()); });               // The request's.

#ifndef BOBBIN_CORE_CONTEXT_VALUE_H_
#define BOBBIN_CORE_CONTEXT_VALUE_H_

#include <memory>
#include <type_traits>
#include <utility>

#include <bobbin/core/internal/context_node.h>

namespace bobbin {

// The name under which a value is set and found.
template <typename T>
class ContextValue {
 public:
  constexpr ContextValue() = default;
  ContextValue(const ContextValue&) = delete;
  ContextValue& operator=(const ContextValue&) = delete;

  // The value in force for the calling thread, or null. It is good until the innermost scope that
  // sets it ends, or the body that has inherited it.
  const T* Get() const noexcept { return static_cast<const T*>(internal::ContextNode::Find(this)); }
};

// Sets a value for the calling thread, and for what it starts, until the scope ends.
template <typename T>
class [[nodiscard]] ContextScope {
 public:
  ContextScope(const ContextValue<T>& name, std::type_identity_t<T> value)
      : entry_(*std::make_unique<Node>(&name, std::move(value)).release()) {}

 private:
  class Node final : public internal::ContextNode {
   public:
    Node(const void* key, T&& value)
        : ContextNode(key, std::addressof(value_), internal::ContextEntry::Outer()),
          value_(std::move(value)) {}

   private:
    const T value_;
  };

  internal::ContextEntry entry_;
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_CONTEXT_VALUE_H_
