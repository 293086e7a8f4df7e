// EXPECT: number_out_of_range.*second_from_0_to_59

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "60 0 0 * * *"_cron;
#else
  return "59 0 0 * * *"_cron;
#endif
}

}  // namespace bobbin::cron
