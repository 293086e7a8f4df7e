// EXPECT: no_day_ever_matches.*day_of_month_from_1_to_31

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 0 30 2 *"_cron;
#else
  return "0 0 0 29 2 *"_cron;
#endif
}

}  // namespace bobbin::cron
