// EXPECT(Clang): requires holding .* exclusively

#include "absl/base/thread_annotations.h"

#include <bobbin/core/shared_mutex.h>

namespace bobbin {

class Counter {
 public:
  int value() {
    const SharedLock lock(mutex_);
    return value_;
  }
  void Add() {
#ifdef BOBBIN_COMPILE_FAIL
    const SharedLock lock(mutex_);
#else
    const ExclusiveLock lock(mutex_);
#endif
    ++value_;
  }

 private:
  SharedMutex mutex_;
  int value_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace bobbin
