// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/keys.h>

namespace bobbin::keys {

const ConfigurationKey<LogLevel> kLogLevel({.name = "bobbin.log.level",
                                            .meaning = "Which lines of the log are written: those "
                                                       "of this level and above.",
                                            .fallback = LogLevel::kInfo,
                                            .words = {{{"debug", LogLevel::kDebug},
                                                       {"info", LogLevel::kInfo},
                                                       {"warning", LogLevel::kWarning},
                                                       {"error", LogLevel::kError}}}});

const ConfigurationKey<double> kTraceSampleRatio(
    {.name = "bobbin.trace.sample-ratio",
     .meaning = "The part of the traces that begin here which is kept.",
     .fallback = 1.0,
     .min = 0.0,
     .max = 1.0});

const ConfigurationKey<absl::Duration> kShutdownBudget(
    {.name = "bobbin.shutdown.budget",
     .meaning = "What the phases of the shutdown may take in all; less than whoever stops the "
                "program waits before it kills it.",
     .default_text = "25s"});

}  // namespace bobbin::keys
