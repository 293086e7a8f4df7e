// EXPECT: (constraints not satisfied|no matching function|not satisf)

#include <bobbin/core/once.h>

namespace bobbin {

// A body succeeds or fails; a number would be neither.
inline absl::Status Count(Once& once, int& count) {
#ifdef BOBBIN_COMPILE_FAIL
  return once.Call([&count] { return ++count; });
#else
  return once.Call([&count] { ++count; });
#endif
}

}  // namespace bobbin
