// SPDX-License-Identifier: Apache-2.0
//
// Host name: what may be asked of a name server, and which names a short one may stand for.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT.

#ifndef BOBBIN_IO_SRC_HOST_NAME_H_
#define BOBBIN_IO_SRC_HOST_NAME_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace bobbin::io::internal {

// OK if `name`, which is no address, is a name: letters, digits, hyphens and underscores, in labels
// of at most 63, 253 in all; a dot at the end is allowed. An error says what is wrong, and where it
// looks like an address, that it is none.
absl::Status CheckHostName(std::string_view name);

// In lower case, without the dot at its end.
std::string CanonicalName(std::string_view name);

// Whether it is this host by definition (RFC 6761). REQUIRES: canonical.
bool IsLocalhost(std::string_view name);

// The names to ask for, one after the other. REQUIRES: `name` is checked, `search` is canonical.
std::vector<std::string> SearchedNames(std::string_view name, std::span<const std::string> search,
                                       int dots_min);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_HOST_NAME_H_
