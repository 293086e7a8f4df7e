// EXPECT: six_fields_needed_second_minute_hour_day_of_month_month_day_of_week

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "-"_cron;
#else
  return "@daily"_cron;
#endif
}

}  // namespace bobbin::cron
