// SPDX-License-Identifier: Apache-2.0
//
// bobbin-cron: says when cron expressions are due, what they mean, and what is wrong with them.
//
// Exit codes: 0 all went well, 1 an expression, a zone or a time is wrong, 2 wrong options.

#include <iostream>

#include <bobbin/core/status.h>

#include "cron/program/commands.h"
#include "cron/program/options.h"

int main(int argc, char** argv) {
  constexpr int kFailure = 1;
  constexpr int kMisuse = 2;
  // Batches are long; nobody mixes these streams with those of C.
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);

  const absl::StatusOr<bobbin::cron::program::Options> options =
      bobbin::cron::program::ParseOptions(argc, argv);
  if (!options.ok()) {
    std::cerr << "bobbin-cron: " << bobbin::MessageOf(options.status())
              << "; --help lists what there is\n";
    return kMisuse;
  }
  const absl::Status done = bobbin::cron::program::RunCommand(*options, std::cin, std::cout);
  std::cout.flush();
  if (done.ok() && std::cout) return 0;
  std::cerr << "bobbin-cron: "
            << (done.ok() ? "cannot write to standard output" : bobbin::MessageOf(done)) << '\n';
  return kFailure;
}
