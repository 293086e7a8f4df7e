// EXPECT: (constraints not satisfied|no matching function|not satisf)

#include <vector>

#include <bobbin/core/guarded.h>

namespace bobbin {

// A predicate only looks.
inline absl::Status AwaitEmpty(Guarded<std::vector<int>>& values) {
  auto held = values.Lock();
#ifdef BOBBIN_COMPILE_FAIL
  return held.Await([](std::vector<int>& value) { return value.empty(); });
#else
  return held.Await([](const std::vector<int>& value) { return value.empty(); });
#endif
}

}  // namespace bobbin
