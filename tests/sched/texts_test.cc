// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/internal/texts.h>

#include "tests/support/status_matchers.h"

namespace bobbin::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

std::optional<std::string> Known(std::string_view key) {
  if (key == "a") return "1";
  if (key == "a.long-key_2") return "${a}";
  return std::nullopt;
}

TEST(ReplacePlaceholdersTest, KeysAndFallbacksAreReplaced) {
  EXPECT_THAT(ReplacePlaceholders("no key", Known), test::IsOkAndHolds("no key"));
  EXPECT_THAT(ReplacePlaceholders("<${a}${a:x}>", Known), test::IsOkAndHolds("<11>"));
  EXPECT_THAT(ReplacePlaceholders("${b:x:y} ${b:}", Known), test::IsOkAndHolds("x:y "));
  EXPECT_THAT(ReplacePlaceholders("$a $$ {a} }", Known), test::IsOkAndHolds("$a $$ {a} }"));
  EXPECT_THAT(ReplacePlaceholders("${a.long-key_2}", Known), test::IsOkAndHolds("${a}"));
}

TEST(ReplacePlaceholdersTest, AnErrorNamesTheKeyAndNothingElseOfTheText) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"hush ${b}", "\"b\" has no value"},
           {"hush ${a", "at column 6 is not closed"},
           {"hush ${}", "at column 6 has no key"},
           {"hush ${hu sh}", "at column 6 has no key"},
           {"hush ${:hush}", "at column 6 has no key"},
           {"hush ${b:${a}}", "the fallback of ${b} holds a placeholder"},
       }) {
    const auto replaced = ReplacePlaceholders(text, Known);
    ASSERT_THAT(replaced, test::StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(MessageOf(replaced.status()), HasSubstr(why));
    EXPECT_THAT(MessageOf(replaced.status()), Not(HasSubstr("hush")));
  }
}

TEST(ReplacePlaceholdersTest, AnErrorOfTheLookupComesBack) {
  const auto fails = [](std::string_view) -> absl::StatusOr<std::optional<std::string>> {
    return absl::DataLossError("torn");
  };
  EXPECT_THAT(ReplacePlaceholders("${a:1}", fails), test::StatusIs(absl::StatusCode::kDataLoss));
}

TEST(EnvironmentNameTest, DotsAndDashesBecomeUnderscores) {
  EXPECT_EQ(EnvironmentName("bobbin.task.executor.reports.max-threads"),
            "BOBBIN_TASK_EXECUTOR_REPORTS_MAX_THREADS");
}

TEST(QuotedTest, ControlCharactersAndLengthDoNotReachALog) {
  EXPECT_EQ(Quoted("a\n\x1b"), "\"a\\n\\x1b\"");
  EXPECT_LT(Quoted(std::string(1'000'000, 'x')).size(), 200u);
}

TEST(EditsBetweenTest, CountsLetters) {
  EXPECT_EQ(EditsBetween("", "abc"), 3u);
  EXPECT_EQ(EditsBetween("thread", "threads"), 1u);
  EXPECT_EQ(EditsBetween("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace bobbin::internal
