// SPDX-License-Identifier: Apache-2.0
//
// The check that no lock of the operating system is held over a wait, in debug builds.
//
// A virtual thread that parks with a std::mutex locked stops its carrier for ever as soon as
// another virtual thread of the same carrier wants the mutex. So that this shows at the first such
// wait, and not at the unlucky one, the functions of the C library that take and release mutexes
// and reader-writer locks are wrapped, and count on the record of the calling virtual thread.
//
// A linker that searches this library before the C library, as it does for a program that is linked
// with it, takes the wrappers from here; a program with wrappers of its own keeps them, for these
// are weak. What it does not see: locks that the C library takes inside itself, absl::Mutex, and
// code that was linked statically with the C library. A lock that one virtual thread takes and
// another gives back counts on the first one until it ends.

#include <dlfcn.h>
#include <pthread.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>

#if !defined(NDEBUG) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)

namespace bobbin::internal {

namespace {

// The function that would be called without this file. No static initialisation: the first caller
// may come before it.
template <typename Function>
class Wrapped {
 public:
  explicit constexpr Wrapped(const char* name) : name_(name) {}

  template <typename... Arguments>
  int operator()(Arguments... arguments) noexcept {
    void* found = found_.load();
    if (__builtin_expect(found == nullptr, 0)) {
      found = dlsym(RTLD_NEXT, name_);
      found_.store(found);
    }
    return reinterpret_cast<Function*>(found)(arguments...);
  }

 private:
  const char* const name_;
  Atomic<void*> found_{nullptr};  // Written by whoever looks first, always the same.
};

Thread* CurrentVirtual() noexcept {
  Thread* const thread = CurrentOrNull();
  return thread != nullptr && thread->role() == Role::kVirtual ? thread : nullptr;
}

int Taken(int result) noexcept {
  Thread* const thread = result == 0 ? CurrentVirtual() : nullptr;
  if (thread != nullptr) thread->EnterOsLock();
  return result;
}

int Released(int result) noexcept {
  Thread* const thread = result == 0 ? CurrentVirtual() : nullptr;
  if (thread != nullptr) thread->LeaveOsLock();
  return result;
}

}  // namespace

}  // namespace bobbin::internal

using bobbin::internal::Released;
using bobbin::internal::Taken;
using bobbin::internal::Wrapped;

extern "C" {

[[gnu::weak]] int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static constinit Wrapped<int(pthread_mutex_t*)> next("pthread_mutex_lock");
  return Taken(next(mutex));
}

[[gnu::weak]] int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static constinit Wrapped<int(pthread_mutex_t*)> next("pthread_mutex_trylock");
  return Taken(next(mutex));
}

[[gnu::weak]] int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
  static constinit Wrapped<int(pthread_mutex_t*, const timespec*)> next("pthread_mutex_timedlock");
  return Taken(next(mutex, time));
}

[[gnu::weak]] int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                          const timespec* time) noexcept {
  static constinit Wrapped<int(pthread_mutex_t*, clockid_t, const timespec*)> next(
      "pthread_mutex_clocklock");
  return Taken(next(mutex, clock, time));
}

[[gnu::weak]] int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static constinit Wrapped<int(pthread_mutex_t*)> next("pthread_mutex_unlock");
  return Released(next(mutex));
}

[[gnu::weak]] int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static constinit Wrapped<int(pthread_rwlock_t*)> next("pthread_rwlock_rdlock");
  return Taken(next(lock));
}

[[gnu::weak]] int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  static constinit Wrapped<int(pthread_rwlock_t*)> next("pthread_rwlock_tryrdlock");
  return Taken(next(lock));
}

[[gnu::weak]] int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static constinit Wrapped<int(pthread_rwlock_t*)> next("pthread_rwlock_wrlock");
  return Taken(next(lock));
}

[[gnu::weak]] int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  static constinit Wrapped<int(pthread_rwlock_t*)> next("pthread_rwlock_trywrlock");
  return Taken(next(lock));
}

[[gnu::weak]] int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  static constinit Wrapped<int(pthread_rwlock_t*)> next("pthread_rwlock_unlock");
  return Released(next(lock));
}

}  // extern "C"

#endif
