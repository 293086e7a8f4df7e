// EXPECT: number_out_of_range.*hour_from_0_to_23

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 25 * * *"_cron;
#else
  return "0 0 23 * * *"_cron;
#endif
}

}  // namespace bobbin::cron
