// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/cron/memory_lease_store.h>

#include "cron/src/quoted.h"

namespace bobbin::cron {

namespace {

absl::Status NotHeld(std::string_view verb, const Lease& lease) {
  return MakeStatus(absl::StatusCode::kAborted, fmt::format("{} lease {}: it is not held any more",
                                                            verb, internal::Quoted(lease.name)));
}

}  // namespace

absl::StatusOr<std::optional<Lease>> MemoryLeaseStore::Claim(const LeaseTerms& terms) {
  BOBBIN_RETURN_IF_ERROR(terms.Check());
  MutexLock lock(leases_->mutex_);
  const absl::Time now = leases_->clock_.Now().wall;
  Lease& row = leases_->rows_[terms.name];
  if (row.token > 0 && row.until > now) return std::optional<Lease>();
  row = {.name = terms.name,
         .owner = NewLeaseOwner(),
         .token = row.token + 1,
         .since = now,
         .until = now + terms.at_most,
         .at_least = terms.at_least};
  return std::optional<Lease>(row);
}

absl::StatusOr<Lease> MemoryLeaseStore::Extend(const Lease& lease, absl::Duration at_most) {
  MutexLock lock(leases_->mutex_);
  const absl::Time now = leases_->clock_.Now().wall;
  const auto row = leases_->rows_.find(lease.name);
  if (row == leases_->rows_.end() || row->second.owner != lease.owner || row->second.until <= now) {
    return NotHeld("extend", lease);
  }
  row->second.until = now + at_most;
  return row->second;
}

absl::Status MemoryLeaseStore::Release(const Lease& lease) {
  MutexLock lock(leases_->mutex_);
  const absl::Time now = leases_->clock_.Now().wall;
  const auto row = leases_->rows_.find(lease.name);
  if (row == leases_->rows_.end() || row->second.owner != lease.owner || row->second.until <= now) {
    return NotHeld("release", lease);
  }
  row->second.until = std::max(now, row->second.since + row->second.at_least);
  row->second.owner.clear();  // It is taken for the rest of at_least, but by nobody.
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Lease>> MemoryLeaseStore::List() {
  MutexLock lock(leases_->mutex_);
  const absl::Time now = leases_->clock_.Now().wall;
  std::vector<Lease> held;
  for (const auto& [name, row] : leases_->rows_) {
    if (row.until > now) held.push_back(row);
  }
  return held;
}

}  // namespace bobbin::cron
