// SPDX-License-Identifier: Apache-2.0
//
// Oracle: what an expression means, worked out in the plainest way, to compare with.
//
// It shares no code with the product: the text is split with string functions, a day is looked at
// as a day, and a time zone is walked through second by second or minute by minute.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_CRON_ORACLE_H_
#define BOBBIN_TESTS_CRON_ORACLE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include <bobbin/cron/schedule.h>

#include "tests/support/random.h"

namespace bobbin::test {

class Oracle {
 public:
  // REQUIRES: `text` has six fields and no mistake.
  explicit Oracle(std::string_view text);

  bool MatchesDay(absl::CivilDay day) const;
  bool MatchesTime(absl::CivilSecond time) const;
  bool Matches(absl::CivilSecond time) const {
    return MatchesDay(absl::CivilDay(time)) && MatchesTime(time);
  }
  // Whether second, minute or hour has *, a range or a step.
  bool IsInterval() const { return is_interval_; }

  // Every run from `from` on and before `to`, found by looking at each `step`.
  std::vector<absl::Time> Runs(absl::TimeZone zone, absl::Time from, absl::Time to,
                               absl::Duration step, cron::Repeated repeated,
                               cron::Skipped skipped) const;

 private:
  std::set<int> seconds_;
  std::set<int> minutes_;
  std::set<int> hours_;
  std::set<int> months_;
  std::vector<std::string> day_parts_;      // In upper case.
  std::vector<std::string> weekday_parts_;  // In upper case, names replaced by numbers.
  bool is_interval_ = false;
};

// A text that may stand in a configuration: no mistake, any form of the dialect. With `second`, the
// field for the second is that text.
std::string RandomExpression(Random& random, std::string_view second = "");

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_CRON_ORACLE_H_
