// SPDX-License-Identifier: Apache-2.0
//
// bobbin-cron: what it prints, and how it ends.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cron/tsv.h"

namespace bobbin::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

struct Result {
  int code = -1;
  std::string output;
  std::string errors;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Runs the program with `arguments`, as a shell reads them.
Result Cron(const std::string& arguments, const std::string& input = "") {
  std::string pattern = testing::TempDir() + "bobbin-cron-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "input", std::ios::binary) << input;
  const std::string command = "'" BOBBIN_CRON_PROGRAM "' " + arguments + " <'" +
                              (folder / "input").string() + "' >'" + (folder / "output").string() +
                              "' 2>'" + (folder / "errors").string() + "'";
  const int status = std::system(command.c_str());
  const Result result = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                         .output = ReadFile(folder / "output"),
                         .errors = ReadFile(folder / "errors")};
  std::filesystem::remove_all(folder);
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(CronProgramTest, NextPrintsTheNextRuns) {
  const Result result =
      Cron("next '0 30 2 * * MON-FRI' --zone Europe/Berlin --from 2026-11-27 -n 3");
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(result.output,
            "2026-11-27T02:30:00+01:00\n2026-11-30T02:30:00+01:00\n2026-12-01T02:30:00+01:00\n");
  EXPECT_EQ(Cron("next '* * * * * *'").code, 0) << "from now";
  EXPECT_EQ(Cron("next @daily --from 2026-11-27T00:00:00Z --zone +05:30").output,
            "2026-11-28T00:00:00+05:30\n");
  EXPECT_EQ(Cron("next @daily --from '2026-11-27 23:59' --zone -03:00").output,
            "2026-11-28T00:00:00-03:00\n");
}

TEST(CronProgramTest, PreviousPrintsThoseBefore) {
  EXPECT_EQ(Cron("previous '0 0 0 29 2 *' --from 2026-01-01 -n 2").output,
            "2024-02-29T00:00:00+00:00\n2020-02-29T00:00:00+00:00\n");
}

TEST(CronProgramTest, BetweenPrintsASpan) {
  EXPECT_EQ(Cron("between @hourly --from 2026-01-01 --to 2026-01-01T02:00").output,
            "2026-01-01T00:00:00+00:00\n2026-01-01T01:00:00+00:00\n");
  EXPECT_EQ(Cron("between @hourly --from 2026-01-01 --to 2027-01-01 -n 1").output,
            "2026-01-01T00:00:00+00:00\n");
}

TEST(CronProgramTest, PoliciesForClocksThatChangeCanBeChosen) {
  const std::string span = " --zone America/New_York --from 2026-11-01 --to 2026-11-01T03:00";
  EXPECT_EQ(Lines(Cron("between '0 */30 1 * * *'" + span).output).size(), 2u);
  EXPECT_EQ(Lines(Cron("between '0 */30 1 * * *' --repeated intervals" + span).output).size(), 4u);
  EXPECT_EQ(Lines(Cron("between '0 0 1 * * *' --repeated both" + span).output).size(), 2u);
  EXPECT_EQ(
      Cron("next '0 30 2 * * *' --zone Europe/Berlin --from 2026-03-29 --skipped after").output,
      "2026-03-29T03:00:00+02:00\n");
  EXPECT_EQ(Cron("next '0 30 2 ? 3 SUN#2' --zone America/New_York --from 2026-01-01").output,
            "none\n");
}

TEST(CronProgramTest, ExplainSaysItInEnglish) {
  const Result result = Cron("explain '0 0 0 13 * FRI' --from 2026-11-30");
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, StartsWith("at 00:00, on day 13 of the month, if it is Friday\n"));
  EXPECT_THAT(result.output, HasSubstr("\n  day-of-week   FRI              of 0-7 or SUN-SAT\n"));
  EXPECT_THAT(result.output, HasSubstr("\n  Fri 2027-08-13T00:00:00+00:00\n"));
}

TEST(CronProgramTest, CheckSaysWhatIsWrong) {
  EXPECT_EQ(Cron("check '@daily'").output, "ok\n");
  EXPECT_EQ(Cron("check '@daily'").code, 0);
  const Result wrong = Cron("check '0 61 * * * *'");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.output, "");
  EXPECT_EQ(wrong.errors,
            "bobbin-cron: parse cron expression \"0 61 * * * *\": minute, column 3: \"61\" is out "
            "of range; allowed is 0-59\n");
  // Expressions may begin with a dash.
  EXPECT_THAT(Cron("check '-1 * * * * *'").errors, HasSubstr("second, column 1"));
  EXPECT_THAT(Cron("check -").errors, HasSubstr("switches a job off"));
}

TEST(CronProgramTest, WhatIsWrongEndsWithOneAndOneLine) {
  for (const char* arguments :
       {"next '0 0 0 30 2 *'", "next @daily --zone Europe/Berlim", "next @daily --from yesterday",
        "explain '* * * * *'", "between @daily --from 2026-01-01 --to never"}) {
    const Result result = Cron(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(result.output, "") << arguments;
    EXPECT_THAT(result.errors, MatchesRegex("bobbin-cron: [^\n]*\n")) << arguments;
  }
}

TEST(CronProgramTest, AWrongCommandLineEndsWithTwoAndOneLine) {
  for (const char* arguments :
       {"", "tomorrow", "next", "next @daily -n 0", "next @daily -n some", "next @daily --nonsense",
        "next @daily --repeated never", "next @daily --skipped never", "between @daily",
        "next --tsv @daily", "check @daily @weekly"}) {
    const Result result = Cron(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.output, "") << arguments;
    EXPECT_THAT(result.errors, MatchesRegex("bobbin-cron: [^\n]*\n")) << arguments;
  }
  EXPECT_EQ(Cron("--help").code, 0);
  EXPECT_THAT(Cron("--help").output, HasSubstr("explain"));
  EXPECT_THAT(Cron("next --help").output, HasSubstr("--zone"));
  EXPECT_THAT(Cron("--version").output, StartsWith("bobbin-cron "));
}

TEST(CronProgramTest, ABatchHasTheNextRunOfEveryRowOfTheTable) {
  const std::vector<TsvRow> rows = ReadTsv("vectors.tsv");
  std::string input;
  std::string expected;
  for (const TsvRow& row : rows) {
    const std::string line = row[0] + "\t" + row[1] + "\t" + row[2];
    input += line + "\n";
    expected += line + "\t" + row[3] + "\n";
  }
  const Result result = Cron("next --tsv", input);
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(Lines(result.output), Lines(expected));
}

TEST(CronProgramTest, ABatchSaysWhichLinesAreWrong) {
  const Result result = Cron("next --tsv",
                             "0 61 * * * *\tUTC\t2026-01-01\n"
                             "@daily\tEurope/Berlim\t2026-01-01\n"
                             "@daily\tUTC\tthen\n"
                             "@daily\n"
                             "@daily\t\t2026-01-01\r\n");
  EXPECT_EQ(result.code, 0);
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_EQ(lines.size(), 5u) << result.output;
  for (size_t i = 0; i < 4; ++i) EXPECT_THAT(lines[i], HasSubstr("\terror: ")) << lines[i];
  EXPECT_EQ(lines[4], "@daily\t\t2026-01-01\t2026-01-02T00:00:00+00:00");
}

TEST(CronProgramTest, ABatchChecksEveryRowOfTheTable) {
  const std::vector<TsvRow> rows = ReadTsv("invalid.tsv");
  std::string input = "0 0 0 29 2 *\n";
  for (const TsvRow& row : rows) input += row[0] + "\n";
  const Result result = Cron("check --tsv", input);
  EXPECT_EQ(result.code, 0) << result.errors;
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_EQ(lines.size(), rows.size() + 1);
  EXPECT_EQ(lines[0], "ok");
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string field = rows[i][1] == "count-of-fields" ? "count" : rows[i][1];
    EXPECT_THAT(lines[i + 1], MatchesRegex("error\t" + field + "\t[^\t]+")) << rows[i][0];
  }
}

}  // namespace
}  // namespace bobbin::test
