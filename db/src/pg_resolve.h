// SPDX-License-Identifier: Apache-2.0
//
// ResolveHost: the addresses of a host, as texts.
//
// The system's resolver blocks and cannot be interrupted, so it runs on a platform thread, and a
// caller that is to stop leaves it behind there.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      until they are known; a number is its own address.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED. On platform and foreign threads it blocks, and is
//                 not cut short.
//   Errors        UNAVAILABLE: nothing is known about the name.

#ifndef BOBBIN_DB_SRC_PG_RESOLVE_H_
#define BOBBIN_DB_SRC_PG_RESOLVE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bobbin::db::internal {

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_RESOLVE_H_
