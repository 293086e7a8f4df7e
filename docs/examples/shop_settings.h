// SPDX-License-Identifier: Apache-2.0
//
// Settings: what the shop is told from outside. Each has a default that needs nothing.
//
// In the environment they are SHOP_LISTEN, SHOP_DATABASE and so on; in application.properties, or
// in the file of a profile, shop.listen and shop.database.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT: a value that its key does not take.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_SETTINGS_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_SETTINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/sched/configuration.h>
#include <bobbin/sched/log.h>

namespace shop {

struct Settings {
  std::string listen;
  std::string management;      // Where it can be looked into.
  std::string database;        // Empty: a file that goes with the program.
  std::string mail_server;     // Empty: a stub of its own.
  absl::Duration check_every;  // Looks for orders without a receipt.
  std::string telemetry_file;  // Empty: standard error.
  std::string collector;       // Empty: spans go where the log goes.
  bobbin::LogLevel log_level;
  double sample_ratio;
};

absl::StatusOr<Settings> ReadSettings(const bobbin::Configuration& configuration);

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_SETTINGS_H_
