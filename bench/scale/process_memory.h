// SPDX-License-Identifier: Apache-2.0
//
// ProcessMemory: what the system says this process occupies.
//
//   Called from   any thread.
//   Cost          two files of /proc are read; a line for each mapping.

#ifndef BOBBIN_BENCH_SCALE_PROCESS_MEMORY_H_
#define BOBBIN_BENCH_SCALE_PROCESS_MEMORY_H_

#include <cstddef>

namespace bobbin::bench {

struct ProcessMemory {
  size_t resident_bytes = 0;       // VmRSS
  size_t page_table_bytes = 0;     // VmPTE
  size_t peak_resident_bytes = 0;  // VmHWM
  size_t mappings = 0;             // Lines of /proc/self/maps.

  // As it is now.
  static ProcessMemory Read();
  // All that grows with the number of virtual threads.
  size_t occupied_bytes() const { return resident_bytes + page_table_bytes; }
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_SCALE_PROCESS_MEMORY_H_
