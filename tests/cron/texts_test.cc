// SPDX-License-Identifier: Apache-2.0

#include "cron/src/texts.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace bobbin::cron::internal {
namespace {

TEST(ParsePeriodTest, SeveralFormsAreTaken) {
  for (const auto& [text, period] : std::vector<std::pair<std::string, absl::Duration>>{
           {"5000", absl::Seconds(5)},
           {"0", absl::ZeroDuration()},
           {"10s", absl::Seconds(10)},
           {"1h30m", absl::Minutes(90)},
           {"250ms", absl::Milliseconds(250)},
           {"PT1M", absl::Minutes(1)},
           {"PT0.5S", absl::Milliseconds(500)},
           {"PT1H30M", absl::Minutes(90)},
           {"P1D", absl::Hours(24)},
           {"P1DT1S", absl::Hours(24) + absl::Seconds(1)},
       }) {
    EXPECT_THAT(ParsePeriod(text), test::IsOkAndHolds(period)) << text;
  }
  for (const char* text : {"", "soon", "P", "PT", "P1", "P1M", "PT1M1H", "P1DT", "PTS", "P1D1D",
                           "PT1.2.3S", "10 s", "1y", "99999999999999999999"}) {
    EXPECT_THAT(ParsePeriod(text), test::StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(ReplacePropertiesTest, KeysAndFallbacksAreReplaced) {
  const auto property = [](std::string_view key) -> std::optional<std::string> {
    if (key == "a") return "1";
    return std::nullopt;
  };
  EXPECT_THAT(ReplaceProperties("no key", property), test::IsOkAndHolds("no key"));
  EXPECT_THAT(ReplaceProperties("<${a}${a:x}>", property), test::IsOkAndHolds("<11>"));
  EXPECT_THAT(ReplaceProperties("${b:x:y} ${b:}", property), test::IsOkAndHolds("x:y "));
  EXPECT_THAT(ReplaceProperties("${b}", property),
              test::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReplaceProperties("${a", property),
              test::StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace bobbin::cron::internal
