// SPDX-License-Identifier: Apache-2.0
//
// Hex: bytes as two digits each.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_HEX_H_
#define BOBBIN_DB_SRC_HEX_H_

#include <cstddef>
#include <string>

namespace bobbin::db::internal {

// What a digit stands for; -1 for what is none.
constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

inline void AppendHex(std::string& text, std::byte byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  text += kDigits[std::to_integer<size_t>(byte >> 4)];
  text += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
}

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_HEX_H_
