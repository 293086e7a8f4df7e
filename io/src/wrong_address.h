// SPDX-License-Identifier: Apache-2.0
//
// WrongAddress: what a text is told that is no address.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_WRONG_ADDRESS_H_
#define BOBBIN_IO_SRC_WRONG_ADDRESS_H_

#include <string_view>

#include "absl/status/status.h"

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "io/src/printable.h"

namespace bobbin::io::internal {

inline absl::Status WrongAddress(std::string_view text, std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("address {}: {}", Printable(text), why));
}

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_WRONG_ADDRESS_H_
