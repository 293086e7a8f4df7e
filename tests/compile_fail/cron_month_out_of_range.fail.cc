// EXPECT: number_out_of_range.*month_from_1_to_12_or_JAN_to_DEC

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 0 0 1 13 *"_cron;
#else
  return "0 0 0 1 12 *"_cron;
#endif
}

}  // namespace bobbin::cron
