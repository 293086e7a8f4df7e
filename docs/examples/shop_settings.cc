// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/shop_settings.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/configuration_key.h>
#include <bobbin/sched/keys.h>

namespace shop {

namespace {

// [keys]
inline const bobbin::ConfigurationKey<std::string> kListen({.name = "shop.listen",
                                                            .meaning = "Where it listens.",
                                                            .fallback = "127.0.0.1:8080"});
inline const bobbin::ConfigurationKey<absl::Duration> kCheckEvery(
    {.name = "shop.check.every",
     .meaning = "How often it looks for orders without a receipt.",
     .fallback = absl::Seconds(10),
     .min = absl::Milliseconds(1)});
// [/keys]
inline const bobbin::ConfigurationKey<std::string> kManagement(
    {.name = "shop.management.listen",
     .meaning = "Where it can be looked into, by whoever can connect.",
     .fallback = "127.0.0.1:8081"});
inline const bobbin::ConfigurationKey<std::string> kDatabase(
    {.name = "shop.database",
     .meaning = "The file of its orders; empty: one in a temporary folder.",
     .fallback = ""});
inline const bobbin::ConfigurationKey<std::string> kMailServer(
    {.name = "shop.mail.server",
     .meaning = "Who takes its mails, by SMTP; empty: a stub of its own, see GET /mails.",
     .fallback = ""});
inline const bobbin::ConfigurationKey<std::string> kTelemetryFile(
    {.name = "shop.telemetry.file",
     .meaning = "Where log and spans go; empty: standard error.",
     .fallback = ""});
inline const bobbin::ConfigurationKey<std::string> kCollector(
    {.name = "shop.telemetry.collector",
     .meaning = "A collector of OpenTelemetry that gets the spans instead, as "
                "http://127.0.0.1:4318/v1/traces; empty: none.",
     .fallback = ""});

}  // namespace

absl::StatusOr<Settings> ReadSettings(const bobbin::Configuration& configuration) {
  Settings settings;
  BOBBIN_ASSIGN_OR_RETURN(settings.listen, configuration.Get(kListen));
  BOBBIN_ASSIGN_OR_RETURN(settings.management, configuration.Get(kManagement));
  BOBBIN_ASSIGN_OR_RETURN(settings.check_every, configuration.Get(kCheckEvery));
  BOBBIN_ASSIGN_OR_RETURN(settings.database, configuration.Get(kDatabase));
  BOBBIN_ASSIGN_OR_RETURN(settings.mail_server, configuration.Get(kMailServer));
  BOBBIN_ASSIGN_OR_RETURN(settings.telemetry_file, configuration.Get(kTelemetryFile));
  BOBBIN_ASSIGN_OR_RETURN(settings.collector, configuration.Get(kCollector));
  BOBBIN_ASSIGN_OR_RETURN(settings.log_level, configuration.Get(bobbin::keys::kLogLevel));
  BOBBIN_ASSIGN_OR_RETURN(settings.sample_ratio,
                          configuration.Get(bobbin::keys::kTraceSampleRatio));
  return settings;
}

}  // namespace shop
