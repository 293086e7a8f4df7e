// SPDX-License-Identifier: Apache-2.0
//
// Options: what the command line asks for.
//
//   Called from   main.

#ifndef BOBBIN_CRON_PROGRAM_OPTIONS_H_
#define BOBBIN_CRON_PROGRAM_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include <bobbin/cron/schedule.h>

namespace bobbin::cron::program {

enum class Command : uint8_t { kHelp, kVersion, kNext, kPrevious, kBetween, kExplain, kCheck };

struct Options {
  Command command = Command::kHelp;
  std::string help;        // Of kHelp.
  std::string expression;  // Not of a batch.
  std::string zone;
  std::string from = "now";
  std::string to;
  // So many runs; of kBetween at most, and 0 is no limit.
  int64_t count = 0;
  Repeated repeated = Repeated::kFirst;
  Skipped skipped = Skipped::kSkip;
  // Lines are read from standard input.
  bool is_batch = false;
};

// INVALID_ARGUMENT, with one line for people, if it cannot be understood.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv);

}  // namespace bobbin::cron::program

#endif  // BOBBIN_CRON_PROGRAM_OPTIONS_H_
