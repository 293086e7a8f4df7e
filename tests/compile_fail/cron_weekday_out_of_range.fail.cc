// EXPECT: number_out_of_range.*day_of_week_from_0_to_7_or_SUN_to_SAT

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 0 * * 8"_cron;
#else
  return "0 0 0 * * 7"_cron;
#endif
}

}  // namespace bobbin::cron
