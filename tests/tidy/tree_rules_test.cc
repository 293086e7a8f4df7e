// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/tree_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bobbin::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "docs/a.md:3: a dead link: b.md" for each complaint that a rule has about a tree.
std::vector<std::string> Apply(Complaints (*rule)(const Tree&), const Tree& tree) {
  std::vector<std::string> found;
  for (const Complaint& complaint : rule(tree)) {
    found.push_back(complaint.path + ":" + std::to_string(complaint.line) + ": " +
                    complaint.reason);
  }
  return found;
}

TEST(ListsTest, AProductFileIsNamedByItsPath) {
  const Tree tree = {{"core/CMakeLists.txt",
                      "bobbin_module(core HEADERS include/a.h SOURCES src/a.cc)  # src/b.cc\n"},
                     {"core/include/a.h", ""},
                     {"core/include/b.h", ""},
                     {"core/src/a.cc", ""},
                     {"core/src/b.cc", ""},
                     {"core/src/private.h", ""}};
  EXPECT_THAT(Apply(CheckLists, tree), ElementsAre("core/include/b.h:0: in no CMakeLists.txt",
                                                   "core/src/b.cc:0: in no CMakeLists.txt"));
}

TEST(ListsTest, ATestOrBenchmarkMayGoByItsShortName) {
  const Tree tree = {{"tests/core/CMakeLists.txt", "bobbin_test(core mutex)\n"},
                     {"tests/compile_fail/CMakeLists.txt", "bobbin_compile_fail(harness)\n"},
                     {"bench/CMakeLists.txt", "bobbin_bench(core mutex)\nf(echo/load.cc)\n"},
                     {"tests/core/mutex_test.cc", ""},
                     {"tests/core/event_test.cc", ""},
                     {"tests/compile_fail/harness.fail.cc", ""},
                     {"bench/core/mutex_bench.cc", ""},
                     {"bench/echo/load.cc", ""}};
  EXPECT_THAT(Apply(CheckLists, tree),
              ElementsAre("tests/core/event_test.cc:0: in no CMakeLists.txt"));
}

TEST(LinksTest, LeadToFilesFoldersAndHeadings) {
  const Tree tree = {
      {"README.md", "# A\n\n[a](docs/b.md) [b](docs/) [c](docs/b.md#the-end-of-it)\n"},
      {"docs/b.md",
       "# B\n\n## The end, of it\n\n[r](../README.md) [s](#b)\n"
       "[w](https://example.org/x) `[](in code)`\n"
       "```\n[x](fenced)\n```\n"}};
  EXPECT_THAT(Apply(CheckLinks, tree), IsEmpty());
}

TEST(LinksTest, DeadOnesAreFound) {
  const Tree tree = {{"docs/b.md", "# B\n\n[r](README.md) ![p](p.png)\n[s](#c) [t](../../x)\n"}};
  EXPECT_THAT(Apply(CheckLinks, tree),
              ElementsAre("docs/b.md:3: a dead link: README.md", "docs/b.md:3: a dead link: p.png",
                          "docs/b.md:4: no such heading: #c", "docs/b.md:4: a dead link: ../../x"));
}

TEST(NamesTest, ADocumentSpeaksOfWhatExists) {
  const Tree tree = {
      {"CMakeLists.txt", "option(BOBBIN_BUILD_TESTS)\n"},
      {"core/CMakeLists.txt", "bobbin_module(core)\n"},
      {"core/include/bobbin/core/mutex.h", "class Mutex { void Lock(); };\n"},
      {"core/src/a.cc", "getenv(\"BOBBIN_IO\"); class Hidden;\n"},
      {"README.md",
       "`bobbin::core` <bobbin/core/mutex.h> bobbin::Mutex::Lock BOBBIN_IO `BOBBIN_BUILD_*`\n"
       "BOBBIN_BUILD_TESTS\nbobbin::Hidden\n<bobbin/core/event.h>\nBOBBIN_GONE "
       "bobbin::Mutex::Gone()\n"},
      {"CHANGES.md", "bobbin::Gone\n"}};
  EXPECT_THAT(Apply(CheckNames, tree),
              ElementsAre("README.md:3: nothing is called bobbin::Hidden",
                          "README.md:4: no header bobbin/core/event.h",
                          "README.md:5: nothing is called BOBBIN_GONE",
                          "README.md:5: nothing is called bobbin::Mutex::Gone"));
}

}  // namespace
}  // namespace bobbin::tidy
