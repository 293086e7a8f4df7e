// EXPECT: six_fields_needed_a_unix_expression_lacks_the_second_in_front

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "*/5 * * * *"_cron;
#else
  return "0 */5 * * * *"_cron;
#endif
}

}  // namespace bobbin::cron
