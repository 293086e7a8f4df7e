// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <bobbin/core/internal/atomic.h>
#if defined(BOBBIN_SIMULATED)
#include <bobbin/core/internal/simulator.h>
#endif
#include <bobbin/core/role.h>

namespace bobbin::internal {

namespace {
Atomic<DumpHook> dump_hook{nullptr};  // Set by a runtime; read by a failing check.
Atomic<bool> is_failing{false};       // Set by the first failing check.
}  // namespace

void SetDumpHook(DumpHook hook) noexcept { dump_hook.store(hook); }

void CheckFailed(const char* file, int line, const char* condition,
                 std::string_view message) noexcept {
#if defined(BOBBIN_SIMULATED)
  // One run of a simulation fails; the process goes on.
  if (Simulator* const simulator = Simulator::Active()) {
    std::string report = std::string(file) + ":" + std::to_string(line) + ": check failed: ";
    report.append(message).append(" (").append(condition).append("), on ");
    simulator->Fail(report + DescribeCurrentThread());
  }
#endif
  // A check that fails while another is being reported has nothing to add.
  if (is_failing.exchange(true)) _exit(134);
  std::fprintf(stderr, "%s:%d: check failed: %.*s (%s), on %s\n", file, line,
               static_cast<int>(message.size()), message.data(), condition,
               DescribeCurrentThread().c_str());
  if (const DumpHook hook = dump_hook.load()) hook();
  std::fflush(stderr);
  std::abort();
}

}  // namespace bobbin::internal
