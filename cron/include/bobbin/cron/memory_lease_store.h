// SPDX-License-Identifier: Apache-2.0
//
// MemoryLeaseStore: leases within one process. For tests, and for programs that run once.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      while another call is in it: for moments.
//   Cancellation  ignored.
//   Errors        as LeaseStore; it never fails by itself.
//   Lifetime      stores over the same MemoryLeases share it. The clock must outlive it.
//   Cost          a lock and a step in a map.
//
// Example:
//   auto leases = std::make_shared<bobbin::cron::MemoryLeases>(clock);
//   bobbin::cron::MemoryLeaseStore here(leases), there(leases);

#ifndef BOBBIN_CRON_MEMORY_LEASE_STORE_H_
#define BOBBIN_CRON_MEMORY_LEASE_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/mutex.h>
#include <bobbin/cron/clock.h>
#include <bobbin/cron/lease.h>

namespace bobbin::cron {

// The rows, and the clock that decides.
class MemoryLeases {
 public:
  explicit MemoryLeases(Clock& clock = Clock::System()) : clock_(clock) {}

 private:
  friend class MemoryLeaseStore;

  Clock& clock_;
  Mutex mutex_;
  // The last claim of each name, also after its end: its token goes on.
  std::map<std::string, Lease> rows_ ABSL_GUARDED_BY(mutex_);
};

class MemoryLeaseStore final : public LeaseStore {
 public:
  explicit MemoryLeaseStore(std::shared_ptr<MemoryLeases> leases) : leases_(std::move(leases)) {}

  absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) override;
  absl::StatusOr<Lease> Extend(const Lease& lease, absl::Duration at_most) override;
  absl::Status Release(const Lease& lease) override;
  absl::StatusOr<std::vector<Lease>> List() override;

 private:
  std::shared_ptr<MemoryLeases> leases_;
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_MEMORY_LEASE_STORE_H_
