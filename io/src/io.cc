// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include <bobbin/io/io.h>

#include "io/src/epoll_poller.h"
#include "io/src/poller_choice.h"
#include "io/src/ring_poller.h"
#include "io/src/ring_probe.h"

namespace bobbin::io {

PollerFactory AutoPoller(UringOptions options) {
  // Made with the first carrier, shared by all of one runtime.
  auto choice = std::make_shared<internal::PollerChoice>(options);
  return [choice] { return choice->MakePoller(); };
}

PollerFactory UringPoller(UringOptions options) {
  return [options] { return std::make_unique<internal::RingPoller>(options); };
}

PollerFactory EpollPoller() {
  return [] { return std::make_unique<internal::EpollPoller>(std::string()); };
}

absl::Status ProbeUring(const UringOptions& options) {
  return internal::ProbeRing(
      {.submission = options.submission_entries, .completion = options.completion_entries});
}

}  // namespace bobbin::io
