// SPDX-License-Identifier: Apache-2.0
//
// English: what an expression means, and why one never comes true, as people say it.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_ENGLISH_H_
#define BOBBIN_CRON_SRC_ENGLISH_H_

#include <string>

#include <bobbin/cron/internal/field_sets.h>

namespace bobbin::cron::internal {

// "at 02:30, Monday to Friday"
std::string InEnglish(const FieldSets& sets);

// "June has 30 days". REQUIRES: no day is in `sets`.
std::string WhyNoDay(const FieldSets& sets);

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_ENGLISH_H_
