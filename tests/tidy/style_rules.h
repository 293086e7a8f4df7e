// SPDX-License-Identifier: Apache-2.0
//
// Style rules: what a single file may look like, one function for each rule.
//
// Each takes a file and returns what is wrong with it; which files it is meant for, it decides by
// the path. Paths are relative to the root of the tree, with slashes. There is no way to silence a
// rule: a file that is exempt from one is named beside it, in style_rules.cc.

#ifndef BOBBIN_TESTS_TIDY_STYLE_RULES_H_
#define BOBBIN_TESTS_TIDY_STYLE_RULES_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source_text.h"

namespace bobbin::tidy {

struct File {
  std::string path;
  std::string text;
};

// A C++ file, taken apart once for all rules.
struct Source {
  explicit Source(const File& file);

  std::string path;
  std::vector<SourceLine> lines;
};

struct Complaint {
  std::string path;
  int line = 0;  // From 1; 0 when the file as a whole is meant.
  std::string reason;
};

using Complaints = std::vector<Complaint>;

// core, sched, io, cron or db, if the path is in one of them; otherwise empty.
std::string_view ModuleOf(std::string_view path);

bool IsPublicHeader(std::string_view path);

// Every kind of file: 100 columns, no tabs, no trailing space, no blank line twice in a row or at
// either end, a final newline. What cannot be broken may be longer: JSON, and in Markdown a table
// row or a line with a web address.
Complaints CheckLayout(const File& file);

// Includes follow the arrows between the modules, and private files stay private.
Complaints CheckIncludes(const Source& source);

// Words of the language and its library that have a better replacement here.
Complaints CheckBannedCode(const Source& source);

// One word for one thing: the product does not use the other names for its own parts.
Complaints CheckVocabulary(const Source& source);

// The licence line; in headers, what the file is about and its guard; in public ones, the contract.
Complaints CheckHeading(const Source& source);

// An atomic variable says who writes it, who reads it and what it orders.
Complaints CheckAtomics(const Source& source);

// A memory order other than seq_cst names its partner, or says why it needs none.
Complaints CheckMemoryOrders(const Source& source);

// Nothing left for later, and no code that is switched off.
Complaints CheckComments(const Source& source);

// Exactly one title.
Complaints CheckMarkdown(const File& file);

// All of the above that apply.
Complaints CheckFile(const File& file);

}  // namespace bobbin::tidy

#endif  // BOBBIN_TESTS_TIDY_STYLE_RULES_H_
