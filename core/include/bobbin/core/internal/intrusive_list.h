// SPDX-License-Identifier: Apache-2.0
//
// IntrusiveList: a doubly linked list whose links live in its elements. It owns nothing.
//
// Elements derive from IntrusiveLink. An element is in one list at most; linking a linked element,
// unlinking a loose one and destroying a linked one are bugs, caught in debug builds.
//
//   Called from   whoever holds what guards the list.
//   Suspends      never.
//   Cost          a few loads and stores; nothing is allocated.

#ifndef BOBBIN_CORE_INTERNAL_INTRUSIVE_LIST_H_
#define BOBBIN_CORE_INTERNAL_INTRUSIVE_LIST_H_

#include <bobbin/core/check.h>

namespace bobbin::internal {

class IntrusiveLink {
 public:
  IntrusiveLink() = default;
  IntrusiveLink(const IntrusiveLink&) = delete;
  IntrusiveLink& operator=(const IntrusiveLink&) = delete;
  ~IntrusiveLink() { BOBBIN_DCHECK(!is_linked(), "destroyed while in a list"); }

  bool is_linked() const noexcept { return next_ != nullptr; }

 private:
  template <typename T>
  friend class IntrusiveList;
  IntrusiveLink* previous_ = nullptr;
  IntrusiveLink* next_ = nullptr;
};

template <typename T>
class IntrusiveList {
 public:
  IntrusiveList() noexcept { head_.previous_ = head_.next_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    BOBBIN_DCHECK(empty(), "a list was destroyed with elements in it");
    head_.previous_ = head_.next_ = nullptr;
  }

  bool empty() const noexcept { return head_.next_ == &head_; }
  T* Front() noexcept { return empty() ? nullptr : static_cast<T*>(head_.next_); }

  void PushBack(T& element) noexcept {
    IntrusiveLink& link = element;
    BOBBIN_DCHECK(!link.is_linked(), "already in a list");
    link.previous_ = head_.previous_;
    link.next_ = &head_;
    head_.previous_->next_ = &link;
    head_.previous_ = &link;
  }
  void PushFront(T& element) noexcept {
    IntrusiveLink& link = element;
    BOBBIN_DCHECK(!link.is_linked(), "already in a list");
    link.previous_ = &head_;
    link.next_ = head_.next_;
    head_.next_->previous_ = &link;
    head_.next_ = &link;
  }
  // The one behind `element`, or null.
  T* Next(T& element) noexcept {
    IntrusiveLink& link = element;
    return link.next_ == &head_ ? nullptr : static_cast<T*>(link.next_);
  }
  T* PopFront() noexcept {
    T* const front = Front();
    if (front != nullptr) Remove(*front);
    return front;
  }
  void Remove(T& element) noexcept {
    IntrusiveLink& link = element;
    BOBBIN_DCHECK(link.is_linked(), "not in a list");
    link.previous_->next_ = link.next_;
    link.next_->previous_ = link.previous_;
    link.previous_ = link.next_ = nullptr;
  }
  // Calls `visit(element)` for each, front first; `visit` must not change the list.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (IntrusiveLink* link = head_.next_; link != &head_; link = link->next_) {
      visit(*static_cast<T*>(link));
    }
  }

 private:
  IntrusiveLink head_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_INTRUSIVE_LIST_H_
