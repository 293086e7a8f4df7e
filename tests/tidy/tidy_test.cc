// SPDX-License-Identifier: Apache-2.0
//
// The rules of this folder, applied to the project itself.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

#include "tests/tidy/style_rules.h"
#include "tests/tidy/tree_rules.h"

namespace bobbin::tidy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = BOBBIN_SOURCE_DIR;

void Read(const fs::path& path, Tree& tree) {
  std::ifstream file(path, std::ios::binary);
  tree.push_back({path.lexically_relative(kRoot).generic_string(),
                  std::string(std::istreambuf_iterator<char>(file), {})});
}

// The project's own files and folders. What else lies around in a checkout (build trees, an
// editor's settings) is not ours.
Tree ReadTree() {
  Tree tree;
  for (const char* name : {".clang-format", ".clang-tidy", ".gitignore", "CHANGES.md",
                           "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "run"}) {
    if (fs::exists(kRoot / name)) Read(kRoot / name, tree);
  }
  for (const char* name :
       {".ci", "bench", "cmake", "core", "cron", "db", "docs", "io", "sched", "tests"}) {
    if (!fs::exists(kRoot / name)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / name)) {
      if (entry.is_regular_file()) Read(entry.path(), tree);
    }
  }
  std::sort(tree.begin(), tree.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return tree;
}

const Tree& TheTree() {
  static const Tree tree = ReadTree();
  return tree;
}

// One line each, as compilers write them.
std::string Listed(const Complaints& complaints) {
  std::string list = std::to_string(complaints.size()) + " complaints\n";
  for (const Complaint& complaint : complaints) {
    list += complaint.path + ":" + std::to_string(std::max(complaint.line, 1)) + ": " +
            complaint.reason + "\n";
  }
  return list;
}

TEST(TidyTest, TheTreeIsTheProject) {
  EXPECT_TRUE(std::any_of(TheTree().begin(), TheTree().end(), [](const File& file) {
    return file.path == "core/CMakeLists.txt";
  })) << kRoot;
}

TEST(TidyTest, EveryFileFollowsTheStyle) {
  Complaints complaints;
  for (const File& file : TheTree()) {
    const Complaints more = CheckFile(file);
    complaints.insert(complaints.end(), more.begin(), more.end());
  }
  EXPECT_TRUE(complaints.empty()) << Listed(complaints);
}

TEST(TidyTest, EverySourceIsListed) {
  const Complaints complaints = CheckLists(TheTree());
  EXPECT_TRUE(complaints.empty()) << Listed(complaints);
}

TEST(TidyTest, EveryLinkLeadsSomewhere) {
  const Complaints complaints = CheckLinks(TheTree());
  EXPECT_TRUE(complaints.empty()) << Listed(complaints);
}

TEST(TidyTest, EveryDocumentedNameExists) {
  const Complaints complaints = CheckNames(TheTree());
  EXPECT_TRUE(complaints.empty()) << Listed(complaints);
}

}  // namespace
}  // namespace bobbin::tidy
