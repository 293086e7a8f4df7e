// SPDX-License-Identifier: Apache-2.0

#include "tests/cron/zones.h"

#include <algorithm>
#include <filesystem>

#include "absl/time/civil_time.h"
#include "gtest/gtest.h"

#include "tests/cron/oracle.h"

namespace bobbin::test {

namespace fs = std::filesystem;

absl::TimeZone ZoneNamed(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

std::vector<std::string> ZoneNames() {
  const fs::path folder = "/usr/share/zoneinfo";
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    absl::TimeZone zone;
    if (name[0] >= 'A' && name[0] <= 'Z' && name.find('.') == name.npos &&
        entry.is_regular_file()) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Time TimeNearAChange(Random& random, absl::TimeZone zone) {
  const absl::Time any =
      absl::FromCivil(absl::CivilSecond(random.Between(1890, 2110), random.Between(1, 12),
                                        random.Between(1, 28), 0, 0, random.Between(0, 86399)),
                      zone) +
      absl::Nanoseconds(random.OneIn(2) ? 0 : random.Between(0, 999'999'999));
  absl::TimeZone::CivilTransition change;
  if (random.OneIn(4) || !zone.NextTransition(any, &change)) return any;
  const absl::Time time = zone.At(change.to).trans;
  if (random.OneIn(8)) return time;
  const int64_t reach = random.OneIn(2) ? 2 * 3600 : 25 * 3600;
  return time + absl::Seconds(random.Between(-reach, reach)) +
         absl::Nanoseconds(random.OneIn(2) ? 0 : random.Between(0, 999'999'999));
}

std::vector<absl::Time> OracleRuns(const cron::Schedule& schedule, std::string_view text,
                                   absl::Time from, absl::Time to, absl::Duration step) {
  absl::Time begin = absl::FromUnixSeconds(absl::ToUnixSeconds(from));
  if (begin < from) begin += absl::Seconds(1);
  return Oracle(text).Runs(schedule.zone(), begin, to, step, schedule.repeated(),
                           schedule.skipped());
}

}  // namespace bobbin::test
