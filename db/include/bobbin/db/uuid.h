// SPDX-License-Identifier: Apache-2.0
//
// Uuid: 128 bits that name something, as RFC 4122 writes them.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          no allocation, but for Text.

#ifndef BOBBIN_DB_UUID_H_
#define BOBBIN_DB_UUID_H_

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bobbin::db {

struct Uuid {
  // `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in either case; nothing, if it is something else.
  static std::optional<Uuid> Parse(std::string_view text);
  // In lower case.
  std::string Text() const;

  friend auto operator<=>(const Uuid&, const Uuid&) = default;

  std::array<std::byte, 16> bytes = {};
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_UUID_H_
