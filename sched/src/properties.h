// SPDX-License-Identifier: Apache-2.0
//
// Properties: a text in the syntax of Java's properties files, in UTF-8.
//
//   # A comment, as is a line that begins with an exclamation mark.
//   key = value
//   key: value            The separator is "=", ":", or white space alone.
//   key = one             A line that ends with a backslash goes on in the next one.
//   key = \u00e4 \t \\    Escapes; a backslash before any other letter is left out.
//
// Unlike Java's: a key may be set once, and may not be empty; an escape must be whole; the text
// must be UTF-8 without zeros.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_PROPERTIES_H_
#define BOBBIN_SCHED_SRC_PROPERTIES_H_

#include <string>
#include <string_view>
#include <vector>

namespace bobbin::internal {

struct Property {
  std::string key;
  std::string value;
  int line = 0;  // Where it begins; the first one is 1.
};

struct Properties {
  std::vector<Property> properties;
  // "<file>:<line>: what is wrong", for each place; never a value.
  std::vector<std::string> mistakes;
};

// Reads all of `text`; what is wrong does not keep it from the rest.
Properties ParseProperties(std::string_view text, std::string_view file);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_PROPERTIES_H_
