// SPDX-License-Identifier: Apache-2.0
//
// Configuration: keys with types, and where their values come from.

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/job_runner.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/configuration.h>
#include <bobbin/sched/configuration_key.h>
#include <bobbin/sched/runtime.h>

namespace {

// [keys]
inline const bobbin::ConfigurationKey<absl::Duration> kReportEvery(
    {.name = "shop.report.every",
     .meaning = "How often the report is sent.",
     .fallback = absl::Minutes(10),
     .min = absl::Seconds(1)});

// One for each warehouse: shop.warehouse.berlin.shelves, ...
inline const bobbin::ConfigurationPattern<int64_t> kShelves(
    {.name = "shop.warehouse.<name>.shelves",
     .meaning = "Shelves that are there.",
     .fallback = 100,
     .min = 1,
     .max = 10'000});
// [/keys]

absl::Status Serve(bobbin::Runtime& runtime, const bobbin::Configuration& configuration) {
  // [read]
  BOBBIN_ASSIGN_OR_RETURN(absl::Duration every, configuration.Get(kReportEvery));
  BOBBIN_ASSIGN_OR_RETURN(int64_t shelves, configuration.GetFor(kShelves, "berlin"));
  // [/read]
  if (every != absl::Seconds(30) || shelves != 12) return absl::InternalError("another value");

  bobbin::cron::VirtualThreadRunner runner(runtime);
  // [cron]
  bobbin::cron::Scheduler scheduler({.runner = &runner, .property = [&](std::string_view key) {
                                       return configuration.Text(key);
                                     }});
  // [/cron]
  BOBBIN_RETURN_IF_ERROR(
      scheduler.Add({.name = "report", .fixed_delay = "${shop.report.every}"}, [] {}));
  fmt::print("{}", configuration.ToString());
  return scheduler.Stop();
}

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(
      const bobbin::Configuration configuration,
      bobbin::Configuration::Load({.values = {{"shop.report.every", "30s"}},
                                   .environment = {{{"SHOP_WAREHOUSE_BERLIN_SHELVES", "12"}}}}));
  bobbin::Runtime runtime;
  BOBBIN_RETURN_IF_ERROR(Serve(runtime, configuration));
  return runtime.Shutdown();
}

}  // namespace

int main() {
  const absl::Status status = Main();
  fmt::print("{}\n", status.ToString());
  return status.ok() ? 0 : 1;
}
