// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>
#include <bobbin/io/signals.h>

#include "io/src/signal_slot.h"

namespace bobbin::io {

using internal::SignalSlot;

Signals::~Signals() {
  if (slot_ != nullptr) slot_->Close();
}

SignalSlot& Signals::slot() const {
  BOBBIN_CHECK(slot_ != nullptr, "this Signals holds nothing");
  return *slot_;
}

absl::StatusOr<Signals> Signals::Open(std::initializer_list<int> signals) {
  BOBBIN_ASSIGN_OR_RETURN(SignalSlot* const slot, SignalSlot::Open(signals));
  return Signals(*slot);
}

absl::StatusOr<int> Signals::Wait() {
  bobbin::internal::Current().CheckMayWait();
  while (true) {
    if (const std::optional<int> signal = slot().Take()) return *signal;
    BOBBIN_RETURN_IF_ERROR(WaitReadable(slot().fd()));
  }
}

std::optional<int> Signals::TryTake() { return slot().Take(); }

}  // namespace bobbin::io
