// SPDX-License-Identifier: Apache-2.0
//
// The samples of a simulation: in the place of stack_sample.cc. A simulated OS thread that does not
// run cannot be asked, and nobody sends it a signal.

#include <bobbin/core/internal/stack_sample.h>

namespace bobbin::internal {

void StackSample::Install(int) noexcept {}
void StackSample::AdmitHere() noexcept {}
std::optional<StackSample> StackSample::Take(pid_t, std::chrono::nanoseconds) noexcept {
  return std::nullopt;
}

}  // namespace bobbin::internal
