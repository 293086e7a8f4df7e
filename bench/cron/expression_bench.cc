// SPDX-License-Identifier: Apache-2.0
//
// Expressions on the calendar alone: parsing one, and its next time. Beside the search stands one
// from day to day, as a loop over a calendar would do it.

#include <cstddef>
#include <string_view>

#include "absl/time/civil_time.h"
#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/cron/expression.h>

namespace bobbin::bench {
namespace {

using absl::CivilSecond;
using cron::Expression;
using cron::operator""_cron;

void Parse(benchmark::State& state, std::string_view text) {
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(text);
    BOBBIN_CHECK(Expression::Parse(text).ok(), "it is right");
  }
}
BENCHMARK_CAPTURE(Parse, Every, "* * * * * *")->Name("CronParse/EverySecond");
BENCHMARK_CAPTURE(Parse, Weekdays, "0 30 2 * * MON-FRI")->Name("CronParse/Weekdays");
BENCHMARK_CAPTURE(Parse, Long, "0,15,30,45 */5 8-18/2 1,15,LW JAN,APR,JUL,OCT MON#1,FRIL")
    ->Name("CronParse/Everything");

// What never comes true is found out when it is parsed.
void FindNever(benchmark::State& state, std::string_view text) {
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(text);
    BOBBIN_CHECK(cron::FindMistake(text).has_value(), "it never comes");
  }
}
BENCHMARK_CAPTURE(FindNever, Day, "0 0 0 31 2,4,6 *")->Name("CronParse/Never31st");
BENCHMARK_CAPTURE(FindNever, Last, "0 0 0 L-30 11 *")->Name("CronParse/NeverLast30");
BENCHMARK_CAPTURE(FindNever, Weekday, "* * * 28 * SUN#5")->Name("CronParse/NeverSunday");

void Next(benchmark::State& state, const Expression& expression, CivilSecond after) {
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(after);
    benchmark::DoNotOptimize(expression.Next(after));
  }
}
constexpr CivilSecond kNoon(2026, 11, 30, 12, 0, 0);
BENCHMARK_CAPTURE(Next, EverySecond, "* * * * * *"_cron, kNoon)->Name("CronNextLocal/EverySecond");
BENCHMARK_CAPTURE(Next, Weekdays, "0 30 2 * * MON-FRI"_cron, kNoon)->Name("CronNextLocal/Weekdays");
BENCHMARK_CAPTURE(Next, LeapMonday, "0 0 0 29 2 MON"_cron, CivilSecond(2072, 3, 1))
    ->Name("CronNextLocal/LeapMonday");
BENCHMARK_CAPTURE(Next, Christmas, "0 0 6 25 DEC SAT"_cron, CivilSecond(2010, 12, 26))
    ->Name("CronNextLocal/SaturdayChristmas");

// From day to day: what the search is compared with.
void NextDayByDay(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    absl::CivilDay day(2072, 3, 1);
    do {
      ++day;
    } while (day.day() != 29 || day.month() != 2 || absl::GetWeekday(day) != absl::Weekday::monday);
    benchmark::DoNotOptimize(day);
  }
}
BENCHMARK(NextDayByDay)->Name("CronNextLocal/LeapMonday/DayByDay");

}  // namespace
}  // namespace bobbin::bench
