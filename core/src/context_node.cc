// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/context_node.h>

#include <memory>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

const void* ContextNode::Find(const void* key) noexcept {
  const ContextNode* node = OfCurrent();
  while (node != nullptr && node->key_ != key) node = node->outer_;
  return node == nullptr ? nullptr : node->value_;
}

void ContextNode::Drop(ContextNode* node) noexcept {
  // What others did with it comes before its end: the release and the acquire pair with each other.
  while (node != nullptr && node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const std::unique_ptr<ContextNode> last(node);
    node = last->outer_;
  }
}

ContextNode** ContextNode::PlaceOf(Thread& thread) noexcept {
  switch (thread.role()) {
    case Role::kVirtual:
      return &static_cast<Task&>(thread).context();
    case Role::kCarrier:
      return nullptr;
    case Role::kPlatform:
    case Role::kForeign:
      return &static_cast<OsThread&>(thread).context();
  }
  return nullptr;
}

ContextNode* ContextNode::OfCurrent() noexcept {
  ContextNode** const place = PlaceOf(Current());
  return place == nullptr ? nullptr : *place;
}

ContextSwap::ContextSwap(ContextNode* node) noexcept : place_(ContextNode::PlaceOf(Current())) {
  if (place_ != nullptr) outer_ = std::exchange(*place_, node);
}

ContextNode* ContextEntry::Outer() noexcept { return ContextNode::Share(ContextNode::OfCurrent()); }

ContextEntry::ContextEntry(ContextNode& node) noexcept
    : node_(node), place_(ContextNode::PlaceOf(Current())) {
  BOBBIN_CHECK(place_ != nullptr, "a carrier's own stack has no context");
  outer_ = std::exchange(*place_, &node_);
}

ContextEntry::~ContextEntry() {
  BOBBIN_CHECK(*place_ == &node_, "context scopes end in the order in which they began");
  *place_ = outer_;
  ContextNode::Drop(&node_);
}

}  // namespace bobbin::internal
