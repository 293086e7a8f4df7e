// SPDX-License-Identifier: Apache-2.0
//
// LeaseStoreKit: what every LeaseStore must do, as checks that a store's tests run.
//
//   Called from   a virtual thread.
//   Suspends      while the store answers, and while time passes.
//   Errors        a check returns INTERNAL with what was not so, or what the store failed with.
//   Cost          the races make ten thousand claims.
//
// Example:
//   for (const bobbin::cron::LeaseStoreCheck& check : bobbin::cron::LeaseStoreChecks()) {
//     EXPECT_OK(check.run(kit)) << check.name;
//   }

#ifndef BOBBIN_CRON_LEASE_STORE_KIT_H_
#define BOBBIN_CRON_LEASE_STORE_KIT_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/cron/lease.h>

namespace bobbin::cron {

struct LeaseStoreKit {
  // The store of another process: over the same rows.
  absl::AnyInvocable<absl::StatusOr<std::unique_ptr<LeaseStore>>()> open;
  // Lets the store's clock go on: sets it, or sleeps.
  absl::AnyInvocable<void(absl::Duration)> pass;
  // Long beside what a call takes; a store whose clock cannot be set waits for a few of these.
  absl::Duration unit = absl::Seconds(1);
  // Of the races.
  int claims = 10'000;
};

struct LeaseStoreCheck {
  std::string_view name;
  absl::Status (*run)(LeaseStoreKit& kit);
};

std::span<const LeaseStoreCheck> LeaseStoreChecks();

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_LEASE_STORE_KIT_H_
