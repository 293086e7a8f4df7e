// EXPECT(Clang): requires holding mutex

#include "absl/base/thread_annotations.h"

#include <bobbin/core/mutex.h>

namespace bobbin {

class Counter {
 public:
  // A callback: whoever calls it holds the mutex, which the analysis cannot see.
  void Called() {
#ifndef BOBBIN_COMPILE_FAIL
    mutex_.AssertHeld();
#endif
    ++value_;
  }

 private:
  Mutex mutex_;
  int value_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace bobbin
