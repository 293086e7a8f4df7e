// SPDX-License-Identifier: Apache-2.0

#include "io/src/op.h"

#include <fcntl.h>

#include "io/src/io_poller.h"

namespace bobbin::io::internal {

bool ParkedOp::IsDoneHere() noexcept { return CurrentIoPoller().DoOrStart(*this); }

void ParkedOp::RequestStop(bobbin::internal::Wake cause) noexcept {
  if (is_stop_requested_) return;
  is_stop_requested_ = true;
  stop_cause_ = cause;
  poller()->CancelOp(*this);
}

void AcceptOp::SetMode(Mode mode) noexcept {
  if (mode_ == mode) return;
  mode_ = mode;
  ::fcntl(fd(), F_SETFL, mode == Mode::kReturns ? O_NONBLOCK : 0);
}

}  // namespace bobbin::io::internal
