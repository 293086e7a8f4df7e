// SPDX-License-Identifier: Apache-2.0

#include <memory>

#include <bobbin/io/io.h>

#include "io/src/ring.h"
#include "io/src/ring_poller.h"

namespace bobbin::io {

PollerFactory UringPoller(UringOptions options) {
  return [options] { return std::make_unique<internal::RingPoller>(options); };
}

absl::Status ProbeUring(const UringOptions& options) {
  internal::RingPoller poller(options);
  const absl::Status status = poller.Start();
  if (status.ok()) poller.Stop();
  return status;
}

}  // namespace bobbin::io
