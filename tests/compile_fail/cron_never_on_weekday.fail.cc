// EXPECT: no_day_ever_matches.*day_of_week_from_0_to_7

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 0 28 * SUN#5"_cron;
#else
  return "0 0 0 29 * SUN#5"_cron;
#endif
}

}  // namespace bobbin::cron
