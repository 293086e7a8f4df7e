// EXPECT: step_must_be_a_number_from_1.*second_from_0_to_59

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "*/0 * * * * *"_cron;
#else
  return "*/1 * * * * *"_cron;
#endif
}

}  // namespace bobbin::cron
