// SPDX-License-Identifier: Apache-2.0
//
// Texts: what the options of a job say in words: properties, lengths of time.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_TEXTS_H_
#define BOBBIN_CRON_SRC_TEXTS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::cron::internal {

using Property = absl::FunctionRef<std::optional<std::string>(std::string_view key)>;

// `text` with each ${key} and ${key:fallback} replaced. A fallback may hold a colon, but no brace.
absl::StatusOr<std::string> ReplaceProperties(std::string_view text, Property property);

// The environment variable for a key: POLL_DELAY for "poll.delay".
std::optional<std::string> PropertyFromEnvironment(std::string_view key);

// "10s", "1h30m", "PT1M", "PT0.5S", or a plain number of milliseconds.
absl::StatusOr<absl::Duration> ParsePeriod(std::string_view text);

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_TEXTS_H_
