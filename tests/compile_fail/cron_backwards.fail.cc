// EXPECT: range_goes_backwards.*hour_from_0_to_23

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 22-2 * * *"_cron;
#else
  return "0 0 2-22 * * *"_cron;
#endif
}

}  // namespace bobbin::cron
