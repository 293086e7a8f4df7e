// SPDX-License-Identifier: Apache-2.0
//
// ExecutorConfiguration: what a configuration says of executors, bobbin.task.executor.<name>.*.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT: a value, with its key and what is allowed.

#ifndef BOBBIN_SCHED_SRC_EXECUTOR_CONFIGURATION_H_
#define BOBBIN_SCHED_SRC_EXECUTOR_CONFIGURATION_H_

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/sched/configuration.h>
#include <bobbin/sched/executor.h>

namespace bobbin::internal {

// Overwrites in `options` what is set for the executor of that name.
absl::Status Configure(const Configuration& configuration, std::string_view name,
                       ExecutorOptions& options);

// The names of executors for which something is set; see Configuration::NamesOf.
std::set<std::string> ConfiguredExecutors(const Configuration& configuration);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_EXECUTOR_CONFIGURATION_H_
