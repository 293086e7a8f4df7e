// SPDX-License-Identifier: Apache-2.0
//
// Letters: what kind of letter of the alphabet a byte is, whatever the locale.
//
//   Called from   any thread.

#ifndef BOBBIN_SCHED_SRC_LETTERS_H_
#define BOBBIN_SCHED_SRC_LETTERS_H_

namespace bobbin::internal {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLowerCase(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsUpperCase(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsLowerCase(c) || IsUpperCase(c); }

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_LETTERS_H_
