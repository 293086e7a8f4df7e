// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/machine.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <fstream>
#include <string_view>

#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

#include "bench/compare/text.h"

namespace bobbin::compare {
namespace {

std::string CpuModel() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string Compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

Machine DescribeMachine() {
  Machine machine{.cpu = CpuModel(), .cpus = UsableCpus(), .compiler = Compiler()};
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0) machine.memory_bytes = memory.totalram * memory.mem_unit;
  utsname system{};
  if (uname(&system) == 0) machine.kernel = fmt::format("{} {}", system.sysname, system.release);
  const absl::Status ring = io::ProbeUring();
  machine.io = ring.ok() ? "io_uring" : std::string(MessageOf(ring));
#ifdef __OPTIMIZE__
  machine.is_optimised = true;
#endif
  machine.version = BOBBIN_VERSION;
  return machine;
}

std::string MachineText(const Machine& machine) {
  std::string text = fmt::format("bobbin {}, {} CPU{} ({}), {}, {}, {}", machine.version,
                                 machine.cpus, machine.cpus == 1 ? "" : "s", machine.cpu,
                                 Size(static_cast<double>(machine.memory_bytes)), machine.kernel,
                                 machine.compiler);
  if (!machine.is_optimised) {
    text += "\nNot optimised: these figures say little. Use ./run compare.";
  }
  return text;
}

}  // namespace bobbin::compare
