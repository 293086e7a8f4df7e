// EXPECT: empty_part_in_list.*minute_from_0_to_59

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "0 1,,2 * * * *"_cron;
#else
  return "0 1,2 * * * *"_cron;
#endif
}

}  // namespace bobbin::cron
