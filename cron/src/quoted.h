// SPDX-License-Identifier: Apache-2.0
//
// Quoted: text from outside, as messages show it.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_QUOTED_H_
#define BOBBIN_CRON_SRC_QUOTED_H_

#include <string>
#include <string_view>

namespace bobbin::cron::internal {

// In quotes, without control characters, and not longer than kTextBytesShown.
std::string Quoted(std::string_view text);

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_QUOTED_H_
