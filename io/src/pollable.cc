// SPDX-License-Identifier: Apache-2.0

#include "io/src/pollable.h"

#include <bobbin/core/internal/atomic.h>

namespace bobbin::io::internal {

uint64_t Pollable::NextSerial() noexcept {
  static bobbin::internal::Atomic<uint64_t> serial{kForeign};  // Counted by whoever makes one.
  // relaxed: numbers that differ; they order nothing.
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace bobbin::io::internal
