// SPDX-License-Identifier: Apache-2.0

#include "io/src/op.h"

#include <liburing.h>

#include <bobbin/core/internal/dispatcher.h>

#include "io/src/io_poller.h"

namespace bobbin::io::internal {

using bobbin::internal::Phase;
using bobbin::internal::Thread;
using bobbin::internal::Wake;

int32_t ParkedOp::Run(Thread& self) noexcept {
  BOBBIN_DCHECK(self.role() == Role::kVirtual, "only virtual threads park");
  thread_ = &self;
  CurrentIoPoller().Start(*this);
  self.state().BeginWait(Phase::kWaitingKernel);
  self.set_kernel_wait(this);
  const Wake wake = self.Park();
  BOBBIN_CHECK(wake == Wake::kNotified, "a wait for the kernel ended without its completion");
  return result_;
}

void ParkedOp::RequestStop(Wake cause) noexcept {
  if (is_stop_requested_) return;
  is_stop_requested_ = true;
  stop_cause_ = cause;
  poller()->Cancel(*this);
}

void ParkedOp::Complete(int32_t result, uint32_t flags) noexcept {
  result_ = result;
  flags_ = flags;
  thread_->state().Complete();
  thread_->dispatcher()->MakeReady(*thread_);
}

bool ParkedOp::has_more() const { return (flags_ & IORING_CQE_F_SOCK_NONEMPTY) != 0; }

}  // namespace bobbin::io::internal
