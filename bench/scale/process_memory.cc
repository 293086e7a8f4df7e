// SPDX-License-Identifier: Apache-2.0

#include "bench/scale/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace bobbin::bench {

ProcessMemory ProcessMemory::Read() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    size_t kilobytes = 0;
    words >> name >> kilobytes;
    if (name == "VmRSS:") memory.resident_bytes = kilobytes * 1024;
    if (name == "VmPTE:") memory.page_table_bytes = kilobytes * 1024;
    if (name == "VmHWM:") memory.peak_resident_bytes = kilobytes * 1024;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++memory.mappings;
  return memory;
}

}  // namespace bobbin::bench
