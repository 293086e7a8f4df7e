// SPDX-License-Identifier: Apache-2.0
//
// Quoted: text from outside, as messages show it.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_QUOTED_H_
#define BOBBIN_CRON_SRC_QUOTED_H_

#include <bobbin/sched/internal/texts.h>

namespace bobbin::cron::internal {

using bobbin::internal::Quoted;

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_QUOTED_H_
