// SPDX-License-Identifier: Apache-2.0
//
// CancelShield: a stretch of work that must not be cut short.
//
// Cancellation is a request and a state: after it, every wait of the thread answers CANCELLED at
// once. Inside a shield the thread does not see the request, nor any deadline set outside; a
// DeadlineScope begun inside still counts. When the shield ends, the next wait sees what was
// hidden.
//
//   Called from   any thread; a shield must end on the thread that began it, innermost first.
//   Suspends      never.
//   Cost          a few loads and stores.
//
// Example:
//   bobbin::CancelShield shield;              // Closing must not be cut short,
//   bobbin::DeadlineScope at_most(500ms);     // but it must not hang either.
//   result.Update(journal.Close());

#ifndef BOBBIN_CORE_CANCEL_H_
#define BOBBIN_CORE_CANCEL_H_

#include "absl/status/status.h"

#include <bobbin/core/internal/timer_node.h>

namespace bobbin {

class CancelShield {
 public:
  CancelShield();
  CancelShield(const CancelShield&) = delete;
  CancelShield& operator=(const CancelShield&) = delete;
  ~CancelShield();

 private:
  internal::TimerNode* outer_;
};

// What the next wait of the calling thread would answer: OK, CANCELLED or DEADLINE_EXCEEDED. For
// loops that compute without waiting.
absl::Status CheckStop();

}  // namespace bobbin

#endif  // BOBBIN_CORE_CANCEL_H_
