// SPDX-License-Identifier: Apache-2.0
//
// LeaseStore: who of several processes runs a job. A lease is a row that one of them holds for a
// while.
//
// A lease ends by itself after `at_most`, so that a process that dies frees it; whoever needs
// longer extends it in time. It stays taken for `at_least` even if it is released sooner, so that a
// process that comes a moment later does not run the same again. Each claim of a name has a token
// greater than the ones before: what a holder writes elsewhere can be refused there if a later
// token has been seen, however long the holder was asleep in between.
//
// Who holds what is decided by the store's clock alone, within one statement: the clocks of the
// processes may be hours apart.
//
//   Called from   what the store can be called from; virtual threads, as a rule.
//   Suspends      while the store answers.
//   Errors        INVALID_ARGUMENT: the terms. ABORTED: the lease is not held any more. Others: the
//                 store has failed, and nothing is known about the lease.
//   Order         of those who claim at the same time, one gets it; the others do not wait.
//   Lifetime      a Lease is a value; it may be dropped, and ends then by itself.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto lease, store.Claim({.name = "nightly-report"}));
//   if (!lease) return absl::OkStatus();  // Another process does it.

#ifndef BOBBIN_CRON_LEASE_H_
#define BOBBIN_CRON_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::cron {

struct LeaseTerms {
  static constexpr size_t kNameBytesMax = 255;

  std::string name = {};
  absl::Duration at_most = absl::Minutes(10);
  absl::Duration at_least = absl::ZeroDuration();

  // INVALID_ARGUMENT, and why: no name, one longer than kNameBytesMax, a time that is not positive,
  // or `at_least` above `at_most`. For stores, which begin with it.
  absl::Status Check() const;
};

// A claim that has succeeded; times are of the store's clock.
struct Lease {
  std::string name = {};
  std::string owner = {};  // Unique to this claim.
  int64_t token = 0;
  absl::Time since = {};
  absl::Time until = {};
  absl::Duration at_least = {};
};

class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  // Takes the row if nobody holds it; nothing if somebody does.
  virtual absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) = 0;

  // Holds it until `at_most` from now, and returns it as it is then. ABORTED when it has run out,
  // even if nobody has taken it since.
  virtual absl::StatusOr<Lease> Extend(const Lease& lease, absl::Duration at_most) = 0;

  // Gives it up: free at once, or when `at_least` is over. ABORTED when it is not held any more;
  // another holder's is left alone.
  virtual absl::Status Release(const Lease& lease) = 0;

  // The leases that are held now, by name.
  virtual absl::StatusOr<std::vector<Lease>> List() = 0;
};

// A name for a claim that no other process and no other claim has: for stores.
std::string NewLeaseOwner();

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_LEASE_H_
