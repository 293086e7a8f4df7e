// SPDX-License-Identifier: Apache-2.0
//
// The samples of a simulation: in the place of stack_sample.cc and thread_signal.cc. A simulated OS
// thread that does not run cannot be asked, and nobody sends it a signal.

#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/core/internal/thread_signal.h>

namespace bobbin::internal {

void ThreadSignal::Install(int) noexcept {}
void ThreadSignal::AdmitHere() noexcept {}
bool ThreadSignal::Send(pid_t) noexcept { return false; }

std::optional<StackSample> StackSample::Take(pid_t, std::chrono::nanoseconds) noexcept {
  return std::nullopt;
}

}  // namespace bobbin::internal
