// SPDX-License-Identifier: Apache-2.0
//
// Snippet check: what the documents quote is what the examples say.
//
//   snippet_check ROOT
//
// A quotation is a block that begins with "```cpp hello.cc#program". It must equal, but for the
// indentation, what stands in docs/examples/hello.cc between the lines "// [program]" and
// "// [/program]"; the parts of a region that is opened more than once are joined. A block of C++
// that says no region, a region that does not exist, one that no document quotes: each is a
// complaint. Exit status: 0 if there is none, else 1.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Lines = std::vector<std::string>;
using Regions = std::map<std::string, Lines>;  // By "hello.cc#program".

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

std::string_view Trim(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line;
}

// Without the indentation that all lines have.
Lines Dedent(Lines lines) {
  size_t indent = std::string::npos;
  for (const std::string& line : lines) indent = std::min(indent, line.find_first_not_of(' '));
  for (std::string& line : lines) line.erase(0, std::min(indent, line.size()));
  return lines;
}

// "program" if the line is "// [program]"; "/program" at its end; else nothing.
std::string_view MarkOf(std::string_view line) {
  line = Trim(line);
  if (!line.starts_with("// [") || !line.ends_with("]")) return {};
  line = line.substr(4, line.size() - 5);
  return line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-/") == line.npos ? line
                                                                             : std::string_view();
}

class Check {
 public:
  void ReadExample(const fs::path& path) {
    const std::string prefix = path.filename().string() + "#";
    std::string open;
    for (const std::string& line : ReadLines(path)) {
      const std::string_view mark = MarkOf(line);
      if (mark.empty()) {
        if (!open.empty()) regions_[open].push_back(line);
      } else if (open.empty() && mark[0] != '/') {
        open = prefix + std::string(mark);
      } else if (!open.empty() && mark[0] == '/' && open == prefix + std::string(mark.substr(1))) {
        open.clear();
      } else {
        Complain(path, "a mark out of place: " + line);
      }
    }
    if (!open.empty()) Complain(path, "not closed: " + open);
  }

  void ReadDocument(const fs::path& path) {
    constexpr std::string_view kFence = "```";
    const Lines lines = ReadLines(path);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].starts_with(kFence)) continue;
      const std::string info = lines[i].substr(kFence.size());
      Lines block;
      while (++i < lines.size() && lines[i] != kFence) block.push_back(lines[i]);
      if (info.starts_with("cpp")) {
        Compare(path, info.size() > 4 ? info.substr(4) : std::string(), block);
      }
    }
  }

  // Returns whether there was nothing to complain about.
  bool Finish() {
    for (const auto& [name, lines] : regions_) {
      if (!quoted_.contains(name)) Complain(name, "no document quotes it");
    }
    return !has_complained_;
  }

 private:
  void Compare(const fs::path& document, const std::string& name, const Lines& block) {
    quoted_.insert(name);
    const auto region = regions_.find(name);
    if (region == regions_.end()) return Complain(document, "no region '" + name + "'");
    const Lines expected = Dedent(region->second);
    const auto [is, should] =
        std::mismatch(block.begin(), block.end(), expected.begin(), expected.end());
    if (is == block.end() && should == expected.end()) return;
    Complain(document, name + " is not quoted as it is\n  in the document: " +
                           (is == block.end() ? "(the end)" : *is) +
                           "\n  in the example:  " +
                           (should == expected.end() ? "(the end)" : *should));
  }

  void Complain(const fs::path& where, std::string_view what) {
    has_complained_ = true;
    std::printf("%s: %.*s\n", where.c_str(), static_cast<int>(what.size()), what.data());
  }

  Regions regions_;
  std::set<std::string> quoted_;
  bool has_complained_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: snippet_check ROOT\n", stderr);
    return 2;
  }
  const fs::path root = argv[1];
  Check check;
  for (const fs::path& path : FilesIn(root / "docs/examples", ".cc")) {
    if (path.filename() != "snippet_check.cc") check.ReadExample(path);
  }
  check.ReadDocument(root / "README.md");
  for (const fs::path& path : FilesIn(root / "docs", ".md")) check.ReadDocument(path);
  return check.Finish() ? 0 : 1;
}
