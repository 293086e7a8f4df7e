// SPDX-License-Identifier: Apache-2.0
//
// Keys: what the configuration says of the program as a whole. The shutdown's budget a runtime
// reads itself, from ExecutorsOptions::configuration, as it does the keys of its executors. The
// others are for main, which makes the log and the Tracing.
//
//   Called from   any thread: they are constants.
//   Suspends      never.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const auto level, configuration.Get(bobbin::keys::kLogLevel));
//   bobbin::SetLogging({.sink = lines, .level = level});

#ifndef BOBBIN_SCHED_KEYS_H_
#define BOBBIN_SCHED_KEYS_H_

#include "absl/time/time.h"

#include <bobbin/sched/configuration_key.h>
#include <bobbin/sched/log.h>

namespace bobbin::keys {

// bobbin.log.level: LogOptions::level.
extern const ConfigurationKey<LogLevel> kLogLevel;
// bobbin.trace.sample-ratio: TracingOptions::sample_ratio.
extern const ConfigurationKey<double> kTraceSampleRatio;
// bobbin.shutdown.budget: RuntimeOptions::shutdown_budget, over which it wins.
extern const ConfigurationKey<absl::Duration> kShutdownBudget;

}  // namespace bobbin::keys

#endif  // BOBBIN_SCHED_KEYS_H_
