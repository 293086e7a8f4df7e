// SPDX-License-Identifier: Apache-2.0

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include <bobbin/cron/expression.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/zone.h>

int main() {
  using bobbin::cron::operator""_cron;
  const auto zone = bobbin::cron::FindZone("+05:30");
  if (!zone.ok()) return 1;
  const bobbin::cron::Schedule daily({.expression = "0 0 9 * * *"_cron, .zone = *zone});
  return daily.Next(absl::UnixEpoch())->local == absl::CivilSecond(1970, 1, 1, 9, 0, 0) ? 0 : 1;
}
