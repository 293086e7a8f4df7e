// EXPECT: (use of deleted function|call to deleted|overload resolution selected deleted)

#include <bobbin/core/guarded.h>

namespace bobbin {

// The reference would outlive the lock, which ends with the statement.
inline int& Leak(Guarded<int>& number) {
#ifdef BOBBIN_COMPILE_FAIL
  return *number.Lock();
#else
  static int copy;
  const auto held = number.Lock();
  return copy = *held;
#endif
}

}  // namespace bobbin
