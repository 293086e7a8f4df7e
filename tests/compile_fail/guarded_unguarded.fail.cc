// EXPECT: (private|cannot access|no member named)

#include <bobbin/core/guarded.h>

namespace bobbin {

inline int Sum(Guarded<int>& number) {
#ifdef BOBBIN_COMPILE_FAIL
  return number.value_;
#else
  return number.With([](int value) { return value; });
#endif
}

}  // namespace bobbin
