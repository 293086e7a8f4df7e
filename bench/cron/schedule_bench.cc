// SPDX-License-Identifier: Apache-2.0
//
// The next run in a time zone. Beside it stands what no schedule can do without: from an instant to
// the wall clock and back, with abseil and with the C library.

#include <ctime>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/schedule.h>

namespace bobbin::bench {
namespace {

using absl::CivilSecond;
using cron::Expression;
using cron::Repeated;
using cron::Schedule;
using cron::Skipped;
using cron::operator""_cron;

absl::TimeZone NewYork() {
  absl::TimeZone zone;
  BOBBIN_CHECK(absl::LoadTimeZone("America/New_York", &zone), "the host has a database");
  return zone;
}

void RoundTrip(benchmark::State& state, absl::TimeZone zone) {
  absl::Time time = absl::FromCivil(CivilSecond(2026, 11, 30, 12, 0, 0), zone);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(time);
    const CivilSecond local = zone.At(time).cs;
    benchmark::DoNotOptimize(zone.At(local + 1).pre);
  }
}
BENCHMARK_CAPTURE(RoundTrip, Utc, absl::UTCTimeZone())->Name("CronZone/Utc/abseil");
BENCHMARK_CAPTURE(RoundTrip, NewYork, NewYork())->Name("CronZone/NewYork/abseil");

void RoundTripInC(benchmark::State& state) {
  std::time_t time = 1'796'058'000;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(time);
    std::tm local;
    localtime_r(&time, &local);
    ++local.tm_sec;
    benchmark::DoNotOptimize(std::mktime(&local));
  }
}
BENCHMARK(RoundTripInC)->Name("CronZone/Here/libc");

void Next(benchmark::State& state, const Expression& expression, absl::TimeZone zone,
          CivilSecond after, Repeated repeated) {
  const Schedule schedule(
      {.expression = expression, .zone = zone, .repeated = repeated, .skipped = Skipped::kSkip});
  absl::Time time = absl::FromCivil(after, zone);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(time);
    benchmark::DoNotOptimize(schedule.Next(time));
  }
}
constexpr CivilSecond kNoon(2026, 11, 30, 12, 0, 0);

#define BOBBIN_BENCH_NEXT(name, expression, after)                                              \
  BENCHMARK_CAPTURE(Next, name##Utc, expression##_cron, absl::UTCTimeZone(), after,             \
                    Repeated::kFirst)                                                           \
      ->Name("CronNext/" #name "/Utc");                                                         \
  BENCHMARK_CAPTURE(Next, name##NewYork, expression##_cron, NewYork(), after, Repeated::kFirst) \
      ->Name("CronNext/" #name "/NewYork");                                                     \
  BENCHMARK_CAPTURE(Next, name##Both, expression##_cron, NewYork(), after, Repeated::kBoth)     \
      ->Name("CronNext/" #name "/NewYorkBoth")

// Dense.
BOBBIN_BENCH_NEXT(EverySecond, "* * * * * *", kNoon);
BOBBIN_BENCH_NEXT(EveryMinute, "0 * * * * *", kNoon);
BOBBIN_BENCH_NEXT(Every15Minutes, "0 */15 * * * *", kNoon);
BOBBIN_BENCH_NEXT(Weekdays, "0 30 2 * * MON-FRI", kNoon);
// Sparse.
BOBBIN_BENCH_NEXT(LastWeekday, "0 0 0 LW * *", kNoon);
BOBBIN_BENCH_NEXT(EndOfYear, "59 59 23 31 12 *", kNoon);
BOBBIN_BENCH_NEXT(LeapDay, "0 0 0 29 2 *", CivilSecond(2096, 3, 1));
BOBBIN_BENCH_NEXT(SaturdayChristmas, "0 0 6 25 DEC SAT", CivilSecond(2010, 12, 26));
BOBBIN_BENCH_NEXT(LeapMonday, "0 0 0 29 2 MON", CivilSecond(2072, 3, 1));

}  // namespace
}  // namespace bobbin::bench
