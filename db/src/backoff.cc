// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include <bobbin/db/backoff.h>

namespace bobbin::db {

absl::Duration Backoff::After(int64_t attempts, uint64_t random) const {
  const double exponent = static_cast<double>(std::max<int64_t>(attempts, 1) - 1);
  absl::Duration pause = first * std::pow(std::max(growth, 1.0), exponent);
  pause = std::min(pause, max);
  // The upper bits: whatever made it, they are the better ones.
  const double part = static_cast<double>(random >> 11) / static_cast<double>(uint64_t{1} << 53);
  return pause * (1.0 + jitter * (2.0 * part - 1.0));
}

}  // namespace bobbin::db
