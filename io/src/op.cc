// SPDX-License-Identifier: Apache-2.0

#include "io/src/op.h"

#include "io/src/io_poller.h"

namespace bobbin::io::internal {

void ParkedOp::StartHere() noexcept { CurrentIoPoller().StartOp(*this); }

void ParkedOp::RequestStop(bobbin::internal::Wake cause) noexcept {
  if (is_stop_requested_) return;
  is_stop_requested_ = true;
  stop_cause_ = cause;
  poller()->CancelOp(*this);
}

}  // namespace bobbin::io::internal
