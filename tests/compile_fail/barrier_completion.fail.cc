// EXPECT: the completion of a barrier is noexcept

#include <bobbin/core/barrier.h>

namespace bobbin {

inline absl::Status Pass(int& phases) {
#ifdef BOBBIN_COMPILE_FAIL
  Barrier barrier(1, [&phases] { ++phases; });
#else
  Barrier barrier(1, [&phases]() noexcept { ++phases; });
#endif
  return barrier.ArriveAndWait();
}

}  // namespace bobbin
