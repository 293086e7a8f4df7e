// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <random>

#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/lease.h>

#include "cron/src/quoted.h"

namespace bobbin::cron {

absl::Status LeaseTerms::Check() const {
  const auto wrong = [this](std::string_view why) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("claim lease {}: {}", internal::Quoted(name), why));
  };
  if (name.empty()) return wrong("it has no name");
  if (name.size() > kNameBytesMax) return wrong("its name is too long");
  if (at_most <= absl::ZeroDuration()) return wrong("at_most must be positive");
  if (at_least < absl::ZeroDuration()) return wrong("at_least must not be negative");
  if (at_least > at_most) return wrong("at_least must not be more than at_most");
  return absl::OkStatus();
}

std::string NewLeaseOwner() {
  static const std::string process = [] {
    std::random_device random;
    const uint64_t number = uint64_t{random()} << 32 | random();
    return fmt::format("{:012x}", number & 0xffff'ffff'ffff);
  }();
  // Written and read by whoever claims; orders nothing.
  static bobbin::internal::Atomic<uint64_t> claims{0};
  // relaxed: only that no two claims get the same number counts.
  return fmt::format("{}#{}", process, claims.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace bobbin::cron
