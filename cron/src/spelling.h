// SPDX-License-Identifier: Apache-2.0
//
// Spelling: sets of bits as the text of an expression.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_SPELLING_H_
#define BOBBIN_CRON_SRC_SPELLING_H_

#include <string>

#include <bobbin/cron/internal/field_sets.h>

namespace bobbin::cron::internal {

// A text that parses to `sets`.
std::string Spell(const FieldSets& sets);

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_SPELLING_H_
