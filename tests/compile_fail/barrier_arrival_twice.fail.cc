// EXPECT: (use of deleted function|call to deleted|call to implicitly-deleted)

#include <utility>

#include <bobbin/core/barrier.h>

namespace bobbin {

// Each arrival is waited for once.
inline absl::Status Pass(Barrier<>& barrier) {
  auto arrival = barrier.Arrive();
#ifdef BOBBIN_COMPILE_FAIL
  auto copy = arrival;
  return barrier.Wait(std::move(copy));
#else
  return barrier.Wait(std::move(arrival));
#endif
}

}  // namespace bobbin
