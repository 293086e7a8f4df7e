// SPDX-License-Identifier: Apache-2.0
//
// Check documents: what they quote is what the examples say, the tests they name exist, and each
// guarantee stands once, under its number, with a test.
//
//   check_documents ROOT
//
// A quotation is a block that begins with "```cpp hello.cc#program". It must equal, but for the
// indentation, what stands in docs/examples/hello.cc between the lines "// [program]" and
// "// [/program]"; the parts of a region that is opened more than once are joined. Each region is
// quoted somewhere. A test is named as `MutexTest.OneThreadIsInsideAtATime`. A guarantee is an item
// of docs/guarantees.md that begins with "12. " and goes on in the indented lines below.
//
// Exit status: 0 if all is well, 1 if not, 2 if it was started wrongly.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Lines = std::vector<std::string>;

Lines ReadLines(const fs::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The files of a folder whose names end with `extension`, in order.
std::vector<fs::path> FilesIn(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Without the indentation that all lines have.
Lines Dedent(Lines lines) {
  size_t indent = std::string::npos;
  for (const std::string& line : lines) indent = std::min(indent, line.find_first_not_of(' '));
  for (std::string& line : lines) line.erase(0, std::min(indent, line.size()));
  return lines;
}

// "program" for the line "// [program]", "/program" for "// [/program]", nothing for all others.
std::string MarkOf(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with("// [") || !line.ends_with("]")) return {};
  line = line.substr(4, line.size() - 5);
  const bool is_mark = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-/") == line.npos;
  return is_mark ? std::string(line) : std::string();
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The word at the beginning of `text`.
std::string_view FirstWord(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsWordCharacter);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

// The tests that a C++ file declares: "MutexTest.OneThreadIsInsideAtATime" for an opening bracket
// with `MutexTest, OneThreadIsInsideAtATime` behind it.
std::set<std::string> TestsOf(std::string_view text) {
  std::set<std::string> tests;
  for (size_t at = text.find('('); at != text.npos; at = text.find('(', at + 1)) {
    const std::string_view suite = FirstWord(text.substr(at + 1));
    std::string_view rest = text.substr(at + 1 + suite.size());
    if (!suite.ends_with("Test") || !rest.starts_with(',')) continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(", \n"), rest.size()));
    tests.insert(std::string(suite) + "." + std::string(FirstWord(rest)));
  }
  return tests;
}

// The tests that a line of a document names in backticks.
Lines TestsNamedIn(std::string_view line) {
  Lines names;
  for (size_t open = line.find('`'); open != line.npos;) {
    const size_t close = std::min(line.find('`', open + 1), line.size());
    const std::string_view name = line.substr(open + 1, close - open - 1);
    const std::string_view suite = FirstWord(name);
    const std::string_view rest = name.substr(suite.size());
    if (suite.ends_with("Test") && rest.starts_with('.') &&
        FirstWord(rest.substr(1)).size() + 1 == rest.size()) {
      names.emplace_back(name);
    }
    open = close == line.size() ? line.npos : line.find('`', close + 1);
  }
  return names;
}

// The number with which an item of a numbered list begins, and what stands behind it.
struct Item {
  std::string number;
  std::string text;
};

std::optional<Item> ItemOf(std::string_view line) {
  const std::string_view number = FirstWord(line);
  if (number.empty() || number.find_first_not_of("0123456789") != number.npos) return std::nullopt;
  line.remove_prefix(number.size());
  if (!line.starts_with(". ")) return std::nullopt;
  return Item{std::string(number), std::string(line.substr(2))};
}

class Check {
 public:
  void ReadExample(const fs::path& path) {
    const std::string prefix = path.filename().string() + "#";
    std::string open;
    for (const std::string& line : ReadLines(path)) {
      const std::string mark = MarkOf(line);
      if (mark.empty()) {
        if (!open.empty()) regions_[open].push_back(line);
      } else if (open.empty() && mark[0] != '/') {
        open = prefix + mark;
      } else if (!open.empty() && open == prefix + mark.substr(1)) {
        open.clear();
      } else {
        Complain(path, "a mark out of place: " + line);
      }
    }
    if (!open.empty()) Complain(path, "not closed: " + open);
  }

  void ReadTests(const fs::path& folder) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".cc") continue;
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      tests_.merge(TestsOf(text));
    }
  }

  void ReadDocument(const fs::path& path) {
    constexpr std::string_view kFence = "```";
    constexpr std::string_view kCode = "```cpp";
    const Lines lines = ReadLines(path);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (!line.starts_with(kFence)) {
        CheckTests(path, line);
        continue;
      }
      Lines block;
      while (++i < lines.size() && lines[i] != kFence) block.push_back(lines[i]);
      if (line.starts_with(kCode)) {
        CheckQuotation(path, line.substr(std::min(kCode.size() + 1, line.size())), block);
      }
    }
  }

  void ReadGuarantees(const fs::path& path) {
    std::set<std::string> beginnings;
    const Lines lines = ReadLines(path);
    for (size_t i = 0; i < lines.size();) {
      const std::optional<Item> item = ItemOf(lines[i]);
      bool has_test = false;
      do {
        has_test = has_test || !TestsNamedIn(lines[i]).empty();
        ++i;
      } while (i < lines.size() && lines[i].starts_with("   "));
      if (!item) continue;
      if (!beginnings.insert(item->text).second) Complain(path, "twice: " + item->text);
      if (item->number != std::to_string(beginnings.size())) {
        Complain(path, "a number out of turn: " + item->number + ". " + item->text);
      }
      if (!has_test) Complain(path, "without a test: " + item->text);
    }
    if (beginnings.empty()) Complain(path, "no guarantees");
  }

  // Returns whether there was nothing to complain about.
  bool Finish() {
    for (const auto& [name, lines] : regions_) {
      if (!quoted_.contains(name)) Complain(name, "no document quotes it");
    }
    return !has_complained_;
  }

 private:
  void CheckTests(const fs::path& document, std::string_view line) {
    for (const std::string& name : TestsNamedIn(line)) {
      if (!tests_.contains(name)) Complain(document, "no test " + name);
    }
  }

  void CheckQuotation(const fs::path& document, const std::string& name, const Lines& block) {
    quoted_.insert(name);
    const auto region = regions_.find(name);
    if (region == regions_.end()) return Complain(document, "no region '" + name + "'");
    const Lines expected = Dedent(region->second);
    const auto [is, should] =
        std::mismatch(block.begin(), block.end(), expected.begin(), expected.end());
    if (is == block.end() && should == expected.end()) return;
    const auto text = [](auto line, auto end) { return line == end ? "(end)" : *line; };
    Complain(document, name +
                           " is not quoted as it is\n  in the document: " + text(is, block.end()) +
                           "\n  in the example:  " + text(should, expected.end()));
  }

  void Complain(const fs::path& where, const std::string& what) {
    has_complained_ = true;
    std::printf("%s: %s\n", where.c_str(), what.c_str());
  }

  std::map<std::string, Lines> regions_;  // By "hello.cc#program".
  std::set<std::string> quoted_;
  std::set<std::string> tests_;  // "MutexTest.OneThreadIsInsideAtATime"
  bool has_complained_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: check_documents ROOT\n", stderr);
    return 2;
  }
  const fs::path root = argv[1];
  Check check;
  for (const fs::path& path : FilesIn(root / "docs/examples", ".cc")) {
    // This file speaks of marks without having any.
    if (path.filename() != "check_documents.cc") check.ReadExample(path);
  }
  check.ReadTests(root / "tests");
  check.ReadDocument(root / "README.md");
  for (const fs::path& path : FilesIn(root / "docs", ".md")) check.ReadDocument(path);
  check.ReadGuarantees(root / "docs/guarantees.md");
  return check.Finish() ? 0 : 1;
}
