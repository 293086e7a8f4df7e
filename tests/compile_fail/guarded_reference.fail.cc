// EXPECT: a reference would outlive the lock

#include <string>

#include <bobbin/core/guarded.h>

namespace bobbin {

inline std::string TextOf(Guarded<std::string>& text) {
#ifdef BOBBIN_COMPILE_FAIL
  return text.With([](const std::string& value) -> const std::string& { return value; });
#else
  return text.With([](const std::string& value) { return value; });
#endif
}

}  // namespace bobbin
