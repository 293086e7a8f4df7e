// SPDX-License-Identifier: Apache-2.0
//
// Printable: a text from outside as a message shows it: on one line, and not too long.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_PRINTABLE_H_
#define BOBBIN_IO_SRC_PRINTABLE_H_

#include <string>
#include <string_view>

namespace bobbin::io::internal {

// More of a text does not help to recognise it.
inline constexpr size_t kPrintableBytesMax = 300;

// The text, with "?" for what is not plain ASCII, and "..." for what is left out.
inline std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, kPrintableBytesMax));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kPrintableBytesMax) shown += "...";
  return shown;
}

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_PRINTABLE_H_
