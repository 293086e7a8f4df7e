// SPDX-License-Identifier: Apache-2.0
//
// Utf8: how many bytes of a text are one character.
//
//   Called from   any thread.

#ifndef BOBBIN_SCHED_SRC_UTF8_H_
#define BOBBIN_SCHED_SRC_UTF8_H_

#include <cstddef>
#include <string_view>

namespace bobbin::internal {

// The length of the character that `text` begins with; 0 if it begins with none, because a byte is
// wrong or missing, or the character is written too long, half of a pair, or beyond the last one.
inline size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_UTF8_H_
