// SPDX-License-Identifier: Apache-2.0
//
// The OS threads of a simulation: in the place of os_thread_handle.cc. The "pthread_t" of a handle
// is the number of a simulated thread.

#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/fault.h>
#include <bobbin/core/internal/simulator.h>
#include <bobbin/core/status.h>

#include "sched/src/os_thread_handle.h"

namespace bobbin::internal {

namespace {
Simulator& TheSimulator() {
  Simulator* const simulator = Simulator::Active();
  BOBBIN_CHECK(simulator != nullptr, "bobbin::testing starts threads inside a simulation only");
  return *simulator;
}
}  // namespace

absl::StatusOr<OsThreadHandle> OsThreadHandle::TryStart(std::string_view name,
                                                        absl::AnyInvocable<void() &&> body) {
  if (HasFault(faults::kNoOsThread)) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, "start thread: a simulated fault");
  }
  OsThreadHandle handle;
  handle.thread_ = static_cast<pthread_t>(TheSimulator().StartThread(name, std::move(body)));
  return handle;
}

OsThreadHandle::OsThreadHandle(std::string_view name, absl::AnyInvocable<void() &&> body) {
  thread_ = static_cast<pthread_t>(TheSimulator().StartThread(name, std::move(body)));
}

void OsThreadHandle::Join() {
  TheSimulator().JoinThread(static_cast<int>(*std::exchange(thread_, std::nullopt)));
}

void OsThreadHandle::Detach() {
  TheSimulator().DetachThread(static_cast<int>(*std::exchange(thread_, std::nullopt)));
}

void OsThreadHandle::PinToUsableCpu(int) {}  // A simulation has no CPUs.

}  // namespace bobbin::internal
