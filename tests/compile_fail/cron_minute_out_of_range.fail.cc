// EXPECT: number_out_of_range.*minute_from_0_to_59

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 61 * * * *"_cron;
#else
  return "0 59 * * * *"_cron;
#endif
}

}  // namespace bobbin::cron
