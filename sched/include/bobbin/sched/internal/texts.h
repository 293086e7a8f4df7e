// SPDX-License-Identifier: Apache-2.0
//
// Texts: what people write into configuration and into the options of jobs, and how messages show
// it: lengths of time, placeholders, names that are nearly right.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT: what is wrong with the text.

#ifndef BOBBIN_SCHED_INTERNAL_TEXTS_H_
#define BOBBIN_SCHED_INTERNAL_TEXTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::internal {

// Text from outside, as messages show it: in quotes, without control characters, and cut off where
// it gets long.
std::string Quoted(std::string_view text);

// Without white space at either end, and without capital letters.
std::string_view Trimmed(std::string_view text);
std::string LowerCase(std::string_view text);

// "10s", "1h30m", "PT1M", "PT0.5S", or a plain number of milliseconds.
absl::StatusOr<absl::Duration> ParsePeriod(std::string_view text);

// The environment variable for a key: POLL_DELAY for "poll.delay" and for "poll-delay".
std::string EnvironmentName(std::string_view key);
std::optional<std::string> FromEnvironment(std::string_view key);

// The value of a key; nothing if it has none.
using PropertyLookup =
    absl::FunctionRef<absl::StatusOr<std::optional<std::string>>(std::string_view key)>;

// `text` with each ${key} and ${key:fallback} replaced. The first colon ends the key, so a fallback
// may hold others; it may hold neither a brace nor another placeholder. Messages name the keys, and
// nothing else of the text: it may be a password.
absl::StatusOr<std::string> ReplacePlaceholders(std::string_view text, PropertyLookup lookup);

// How many letters must be put in, left out or changed to make one of the other.
size_t EditsBetween(std::string_view a, std::string_view b);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_TEXTS_H_
