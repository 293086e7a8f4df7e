// SPDX-License-Identifier: Apache-2.0
//
// Tree rules: what the files of the project promise about each other.

#ifndef BOBBIN_TESTS_TIDY_TREE_RULES_H_
#define BOBBIN_TESTS_TIDY_TREE_RULES_H_

#include <vector>

#include "tests/tidy/style_rules.h"

namespace bobbin::tidy {

// Every file of the project.
using Tree = std::vector<File>;

// A source file, or a public header, that no CMakeLists.txt names is never compiled, or never
// installed.
Complaints CheckLists(const Tree& tree);

// A relative link in a document leads to a file, a folder or a heading that exists.
Complaints CheckLinks(const Tree& tree);

// What a document calls by name exists: headers, what is declared in them, macros and options.
Complaints CheckNames(const Tree& tree);

}  // namespace bobbin::tidy

#endif  // BOBBIN_TESTS_TIDY_TREE_RULES_H_
