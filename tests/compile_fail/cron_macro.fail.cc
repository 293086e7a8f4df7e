// EXPECT: macro_must_be_yearly_annually_monthly_weekly_daily_midnight_or_hourly

#include <bobbin/cron/expression.h>

namespace bobbin::cron {

inline Expression Wrong() {
#ifdef BOBBIN_COMPILE_FAIL
  return "@reboot"_cron;
#else
  return "@daily"_cron;
#endif
}

}  // namespace bobbin::cron
