// SPDX-License-Identifier: Apache-2.0
//
// Commands: what bobbin-cron prints.
//
//   Called from   main.

#ifndef BOBBIN_CRON_PROGRAM_COMMANDS_H_
#define BOBBIN_CRON_PROGRAM_COMMANDS_H_

#include <iosfwd>

#include "absl/status/status.h"

#include "cron/program/options.h"

namespace bobbin::cron::program {

// Does what `options` ask for, one line of output for each answer. In a batch a line that is wrong
// has its error in the output; otherwise the error is returned.
absl::Status RunCommand(const Options& options, std::istream& input, std::ostream& output);

}  // namespace bobbin::cron::program

#endif  // BOBBIN_CRON_PROGRAM_COMMANDS_H_
