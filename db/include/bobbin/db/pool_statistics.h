// SPDX-License-Identifier: Apache-2.0
//
// PoolStatistics: what a pool of connections does, in numbers.
//
//   Called from   any thread.

#ifndef BOBBIN_DB_POOL_STATISTICS_H_
#define BOBBIN_DB_POOL_STATISTICS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bobbin::db {

struct PoolStatistics {
  size_t open = 0;  // Connections that exist now; of these:
  size_t idle = 0;
  size_t held = 0;
  size_t waiting = 0;        // Who waits for one now.
  uint64_t acquired = 0;     // How often one was given...
  uint64_t waited = 0;       // ...and how often not at once.
  uint64_t refused = 0;      // Because too many wait, or none became free in time.
  uint64_t opened = 0;       // Connections that were made...
  uint64_t open_failed = 0;  // ...could not be made...
  uint64_t discarded = 0;    // ...and were closed because they were not clean, or lost.
  std::chrono::nanoseconds wait_total{0};
  std::chrono::nanoseconds wait_max{0};
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_POOL_STATISTICS_H_
