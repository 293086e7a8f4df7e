// SPDX-License-Identifier: Apache-2.0
//
// VthreadLocal: one value for each thread, virtual or not; what thread_local would have meant.
//
// A value is made at the thread's first use of it and destroyed when the thread ends, the last made
// first. A `thread_local` variable belongs to the carrier instead, and is shared by all virtual
// threads there.
//
//   Called from   any thread.
//   Suspends      never; a value's constructor and destructor may.
//   Lifetime      The object must outlive the threads that use it: make it static.
//   Cost          a search among the values that the thread has; the first use allocates.
//
// Example:
//   bobbin::VthreadLocal<RequestId> request_id;      // At namespace scope.
//   *request_id = id;                                // This thread's.

#ifndef BOBBIN_CORE_LOCAL_H_
#define BOBBIN_CORE_LOCAL_H_

#include <memory>

namespace bobbin {

namespace internal {
// The calling thread's value for `key`, or null; and making it one.
void* FindLocal(const void* key) noexcept;
void AddLocal(const void* key, void* value, void (*destroy)(void*));
}  // namespace internal

template <typename T>
class VthreadLocal {
 public:
  VthreadLocal() = default;
  VthreadLocal(const VthreadLocal&) = delete;
  VthreadLocal& operator=(const VthreadLocal&) = delete;

  // The calling thread's value, value-initialised at first use. Do not keep the reference for
  // another thread.
  T& Get() {
    if (void* const found = internal::FindLocal(this)) return *static_cast<T*>(found);
    auto made = std::make_unique<T>();
    internal::AddLocal(this, made.get(), [](void* value) {
      const std::unique_ptr<T> owned(static_cast<T*>(value));
    });
    return *made.release();
  }
  T& operator*() { return Get(); }
  T* operator->() { return &Get(); }
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_LOCAL_H_
