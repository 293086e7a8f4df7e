// SPDX-License-Identifier: Apache-2.0

#include "io/src/io_poller.h"

#include <typeinfo>

#include <bobbin/core/check.h>
#include <bobbin/sched/internal/current_poller.h>

#include "io/src/ring_poller.h"

namespace bobbin::io::internal {

IoPoller& CurrentIoPoller() noexcept {
  Poller* const poller = bobbin::internal::CurrentPoller();
  BOBBIN_CHECK(poller != nullptr && typeid(*poller) == typeid(RingPoller),
               "this runtime has no poller for I/O: start it with "
               "RuntimeOptions{.poller = bobbin::io::UringPoller()}");
  return static_cast<RingPoller&>(*poller);
}

}  // namespace bobbin::io::internal
