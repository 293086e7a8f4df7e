// SPDX-License-Identifier: Apache-2.0
//
// PollerChoice: which pollers the carriers of one runtime get, and why. Made once, for all of them.
//
//   Called from   the thread that makes the runtime.
//   Suspends      never.
//   Cost          the first poller: a probe of io_uring.

#ifndef BOBBIN_IO_SRC_POLLER_CHOICE_H_
#define BOBBIN_IO_SRC_POLLER_CHOICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include <bobbin/io/io.h>
#include <bobbin/sched/poller.h>

namespace bobbin::io::internal {

class PollerChoice {
 public:
  explicit PollerChoice(const UringOptions& options) : options_(options) {}

  // One more poller of the kind that was chosen.
  std::unique_ptr<Poller> MakePoller();

 private:
  enum class Kind : uint8_t { kRing, kEpoll };

  // What BOBBIN_IO says, or else what works here.
  absl::StatusOr<Kind> Choose();

  const UringOptions options_;
  std::optional<absl::StatusOr<Kind>> kind_;
  std::string reason_;  // Why it is not a ring.
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_POLLER_CHOICE_H_
