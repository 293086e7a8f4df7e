// SPDX-License-Identifier: Apache-2.0
//
// ContextNode: one value of a context, and the context around it.
//
// A context is a list of nodes, innermost first, of which a thread holds the first. Nodes do not
// change. They are counted: once for the node inside, once for each thread that holds them as its
// first, and once for each body that is yet to start with them. So a thread that starts another one
// passes its context on with one increment, and each of the two goes on with its own.
//
//   Called from   the thread whose context it is; Share and Drop: any thread.
//   Suspends      never; a value's destructor may.
//   Cost          passing on: an increment and a decrement, or a compare where there is no context.

#ifndef BOBBIN_CORE_INTERNAL_CONTEXT_NODE_H_
#define BOBBIN_CORE_INTERNAL_CONTEXT_NODE_H_

#include <cstdint>
#include <utility>

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

class Thread;

class ContextNode {
 public:
  ContextNode(const ContextNode&) = delete;
  ContextNode& operator=(const ContextNode&) = delete;
  virtual ~ContextNode() = default;  // For Drop.

  // The value of `key` in the calling thread's context, or null.
  static const void* Find(const void* key) noexcept;

  // One more owner of `node`, or of nothing.
  static ContextNode* Share(ContextNode* node) noexcept {
    // relaxed: the caller owns it, so the count is not zero and orders nothing.
    if (node != nullptr) node->references_.fetch_add(1, std::memory_order_relaxed);
    return node;
  }
  // One owner less; what nobody owns any more is destroyed, from the inside out.
  static void Drop(ContextNode* node) noexcept;

  // Where the thread keeps its first node; null on a carrier's own stack, which has no context.
  static ContextNode** PlaceOf(Thread& thread) noexcept;
  // The calling thread's first node, or null.
  static ContextNode* OfCurrent() noexcept;

 protected:
  // Takes over one share of `outer`.
  ContextNode(const void* key, const void* value, ContextNode* outer) noexcept
      : key_(key), value_(value), outer_(outer) {}

 private:
  const void* const key_;
  const void* const value_;
  ContextNode* const outer_;
  Atomic<uint32_t> references_{1};  // Changed by whoever shares or drops it.
};

// A context that is kept for later.
class SharedContext {
 public:
  // The calling thread's.
  SharedContext() noexcept : node_(ContextNode::Share(ContextNode::OfCurrent())) {}
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;
  ~SharedContext() { ContextNode::Drop(node_); }

  ContextNode* node() const noexcept { return node_; }

 private:
  ContextNode* const node_;
};

// Gives the calling thread another context for a scope. `node` must live longer.
class ContextSwap {
 public:
  explicit ContextSwap(ContextNode* node) noexcept;
  ContextSwap(const ContextSwap&) = delete;
  ContextSwap& operator=(const ContextSwap&) = delete;
  ~ContextSwap() {
    if (place_ != nullptr) *place_ = outer_;
  }

 private:
  ContextNode** const place_;
  ContextNode* outer_ = nullptr;
};

// What all ContextScopes do: makes a node the calling thread's first, and at the end drops it.
// REQUIRES: not on a carrier's own stack.
class ContextEntry {
 public:
  // A share of the calling thread's first node, for one that goes inside it.
  static ContextNode* Outer() noexcept;

  explicit ContextEntry(ContextNode& node) noexcept;
  ContextEntry(const ContextEntry&) = delete;
  ContextEntry& operator=(const ContextEntry&) = delete;
  ~ContextEntry();

 private:
  ContextNode& node_;
  ContextNode** const place_;
  ContextNode* outer_ = nullptr;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_CONTEXT_NODE_H_
