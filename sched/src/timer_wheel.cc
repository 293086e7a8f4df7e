// SPDX-License-Identifier: Apache-2.0

#include "sched/src/timer_wheel.h"

#include <algorithm>
#include <bit>

#include <bobbin/core/check.h>

namespace bobbin::internal {

void TimerWheel::Link(TimerNode& node, int level, int slot) noexcept {
  const int index = level * kSlots + slot;
  TimerNode*& first = slots_[static_cast<size_t>(index)];
  node.place = TimerNode::Place::kWheel;
  node.slot = static_cast<uint32_t>(index);
  node.previous = nullptr;
  node.next = first;
  if (first != nullptr) first->previous = &node;
  first = &node;
  occupied_[static_cast<size_t>(level)] |= uint64_t{1} << slot;
}

void TimerWheel::Add(TimerNode& node) noexcept {
  BOBBIN_DCHECK(node.place == TimerNode::Place::kUnarmed, "armed twice");
  // Rounded up, and never the present tick, whose slot has been dealt with.
  const int64_t rounded = (node.deadline >> kTickBits) +
                          ((node.deadline & ((int64_t{1} << kTickBits) - 1)) != 0 ? 1 : 0);
  int64_t due = std::max(rounded, tick_ + 1);
  // The last level is a circle; what lies beyond waits in its farthest slot and is looked at again
  // there.
  constexpr int kLastShift = kLevelBits * (kLevels - 1);
  due = std::min(due, tick_ + (int64_t{kSlots - 2} << kLastShift));
  const auto differing = static_cast<uint64_t>(due ^ tick_);
  const int level = std::min((63 - std::countl_zero(differing)) / kLevelBits, kLevels - 1);
  Link(node, level, static_cast<int>(due >> (level * kLevelBits)) & (kSlots - 1));
  ++size_;
}

void TimerWheel::Remove(TimerNode& node) noexcept {
  BOBBIN_DCHECK(node.place == TimerNode::Place::kWheel, "not in the wheel");
  if (node.next != nullptr) node.next->previous = node.previous;
  if (node.previous != nullptr) {
    node.previous->next = node.next;
  } else if (expired_ == &node) {
    expired_ = node.next;
  } else {
    slots_[node.slot] = node.next;
    if (node.next == nullptr) {
      occupied_[node.slot / kSlots] &= ~(uint64_t{1} << node.slot % kSlots);
    }
  }
  node.place = TimerNode::Place::kUnarmed;
  --size_;
}

bool TimerWheel::FindNext(Next& next) const noexcept {
  // A lower level is always reached before a higher one: it covers what is left of the present slot
  // there.
  for (int level = 0; level < kLevels; ++level) {
    const uint64_t occupied = occupied_[static_cast<size_t>(level)];
    if (occupied == 0) continue;
    const int shift = level * kLevelBits;
    const int present = static_cast<int>(tick_ >> shift) & (kSlots - 1);
    const int ahead = std::countr_zero(std::rotr(occupied, present));
    next.level = level;
    next.slot = (present + ahead) & (kSlots - 1);
    next.tick = ((tick_ >> shift) + ahead) << shift;
    return true;
  }
  return false;
}

TimerNode* TimerWheel::PopExpired(int64_t now_nanoseconds) noexcept {
  const int64_t now = now_nanoseconds >> kTickBits;
  while (expired_ == nullptr) {
    Next next;
    if (!FindNext(next) || next.tick > now) {
      tick_ = std::max(tick_, now);
      return nullptr;
    }
    tick_ = next.tick;
    // Take the slot's list out whole: level 0 has expired, the others move down.
    TimerNode*& first = slots_[static_cast<size_t>(next.level * kSlots + next.slot)];
    TimerNode* node = first;
    first = nullptr;
    occupied_[static_cast<size_t>(next.level)] &= ~(uint64_t{1} << next.slot);
    if (next.level == 0) {
      expired_ = node;
      continue;
    }
    while (node != nullptr) {
      TimerNode* const rest = node->next;
      node->place = TimerNode::Place::kUnarmed;
      --size_;
      // A deadline in this very tick has expired; Add would put it into the next.
      if (node->deadline <= tick_ << kTickBits) {
        node->place = TimerNode::Place::kWheel;
        ++size_;
        node->previous = nullptr;
        node->next = expired_;
        if (expired_ != nullptr) expired_->previous = node;
        expired_ = node;
      } else {
        Add(*node);
      }
      node = rest;
    }
  }
  TimerNode* const node = expired_;
  Remove(*node);
  return node;
}

int64_t TimerWheel::NextWake() const noexcept {
  Next next;
  if (expired_ != nullptr) return tick_ << kTickBits;
  return FindNext(next) ? next.tick << kTickBits : kNever;
}

void TimerHeap::Put(size_t index, TimerNode& node) noexcept {
  nodes_[index] = &node;
  node.slot = static_cast<uint32_t>(index);
}

void TimerHeap::SiftUp(size_t index, TimerNode& node) noexcept {
  while (index > 0) {
    TimerNode& parent = *nodes_[(index - 1) / kChildren];
    if (parent.deadline <= node.deadline) break;
    Put(index, parent);
    index = (index - 1) / kChildren;
  }
  Put(index, node);
}

void TimerHeap::SiftDown(size_t index, TimerNode& node) noexcept {
  while (true) {
    const size_t first = index * kChildren + 1;
    if (first >= nodes_.size()) break;
    const size_t last = std::min(first + kChildren, nodes_.size());
    size_t least = first;
    for (size_t child = first + 1; child < last; ++child) {
      if (nodes_[child]->deadline < nodes_[least]->deadline) least = child;
    }
    if (nodes_[least]->deadline >= node.deadline) break;
    Put(index, *nodes_[least]);
    index = least;
  }
  Put(index, node);
}

void TimerHeap::Add(TimerNode& node) {
  BOBBIN_DCHECK(node.place == TimerNode::Place::kUnarmed, "armed twice");
  node.place = TimerNode::Place::kHeap;
  nodes_.push_back(&node);
  SiftUp(nodes_.size() - 1, node);
}

void TimerHeap::Remove(TimerNode& node) noexcept {
  BOBBIN_DCHECK(node.place == TimerNode::Place::kHeap && nodes_[node.slot] == &node, "not in it");
  const size_t index = node.slot;
  TimerNode& moved = *nodes_.back();
  nodes_.pop_back();
  node.place = TimerNode::Place::kUnarmed;
  if (&moved == &node) return;
  // It may have to go either way.
  if (index > 0 && nodes_[(index - 1) / kChildren]->deadline > moved.deadline) {
    SiftUp(index, moved);
  } else {
    SiftDown(index, moved);
  }
}

TimerNode* TimerHeap::PopExpired(int64_t now_nanoseconds) noexcept {
  if (nodes_.empty() || nodes_.front()->deadline > now_nanoseconds) return nullptr;
  TimerNode* const node = nodes_.front();
  Remove(*node);
  return node;
}

}  // namespace bobbin::internal
