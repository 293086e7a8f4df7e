// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

void GiveUpSlice() noexcept { sched_yield(); }

void PauseSpin() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

bool OthersRunMeanwhile() noexcept {
  static const bool they_do = [] {
    // The main thread's: the calling one may be a carrier, pinned to a CPU of its own.
    cpu_set_t usable;
    return sched_getaffinity(getpid(), sizeof(usable), &usable) != 0 || CPU_COUNT(&usable) > 1;
  }();
  return they_do;
}

void AtThreadExit(void (*exit)(void*), void* argument) noexcept {
  static const pthread_key_t key = [exit] {
    pthread_key_t made;
    BOBBIN_CHECK(pthread_key_create(&made, exit) == 0, "no pthread key left");
    return made;
  }();
  pthread_setspecific(key, argument);
}

uint64_t CountOsThreads() noexcept {
  // The folder that lists them has a link for each, besides its own two.
  struct stat folder {};
  if (stat("/proc/self/task", &folder) != 0) return std::numeric_limits<uint64_t>::max();
  return folder.st_nlink - 2;
}

StackBounds OwnStack() noexcept {
  pthread_attr_t attributes;
  BOBBIN_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0, "no stack bounds");
  void* base = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &base, &bytes);
  pthread_attr_destroy(&attributes);
  return {static_cast<char*>(base), bytes};
}

}  // namespace bobbin::internal
