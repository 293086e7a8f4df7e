// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/tree_rules.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace bobbin::tidy {
namespace {

using Words = std::set<std::string, std::less<>>;

bool IsSource(std::string_view path) { return path.ends_with(".cc"); }

bool IsCMake(std::string_view path) {
  return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake");
}

// The folder of a file, "" for the root.
std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? std::string_view() : path.substr(0, slash));
}

// The words of a CMake file, its comments left out. A path is one word.
Words WordsOfList(std::string_view text) {
  Words words;
  for (std::string_view line : SplitLines(text)) {
    line = line.substr(0, line.find('#'));
    std::string word;
    for (char c : std::string(line) + ' ') {
      if (IsWordCharacter(c) || c == '.' || c == '/' || c == '-') {
        word += c;
      } else if (!word.empty()) {
        words.insert(std::move(word));
        word.clear();
      }
    }
  }
  return words;
}

// tests/core/mutex_test.cc -> mutex: how bobbin_test(core mutex) calls it.
std::string_view ShortName(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  for (std::string_view suffix : {"_test.cc", "_bench.cc", ".fail.cc", ".cc"}) {
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  }
  return path;
}

// Whether a list in the folder of the file, or in one above it, names the file.
bool IsNamed(std::string_view path, const std::map<std::string, Words>& lists) {
  std::string folder = FolderOf(path);
  while (true) {
    const auto list = lists.find(folder);
    if (list != lists.end()) {
      const std::string_view relative = path.substr(folder.empty() ? 0 : folder.size() + 1);
      if (list->second.contains(relative)) return true;
      if (ModuleOf(path).empty() && list->second.contains(ShortName(path))) return true;
    }
    if (folder.empty()) return false;
    folder = FolderOf(folder);
  }
}

struct DocumentLine {
  int number = 0;
  std::string_view text;
};

// The lines of a Markdown file that are not inside a fenced block.
std::vector<DocumentLine> Prose(std::string_view text) {
  std::vector<DocumentLine> prose;
  bool is_in_fence = false;
  int number = 0;
  for (std::string_view line : SplitLines(text)) {
    ++number;
    const bool is_fence = Trim(line).starts_with("```");
    if (is_fence) is_in_fence = !is_in_fence;
    if (!is_fence && !is_in_fence) prose.push_back({number, line});
  }
  return prose;
}

// "## The switch, in detail" -> the-switch-in-detail
std::string AnchorOf(std::string_view heading) {
  heading = Trim(heading.substr(heading.find_first_not_of('#')));
  std::string anchor;
  for (char c : ToLower(heading)) {
    if (c == ' ') {
      anchor += '-';
    } else if (IsWordCharacter(c) || c == '-' || static_cast<unsigned char>(c) >= 0x80) {
      anchor += c;
    }
  }
  return anchor;
}

Words AnchorsOf(std::string_view text) {
  Words anchors;
  for (const DocumentLine& line : Prose(text)) {
    if (line.text.starts_with('#')) anchors.insert(AnchorOf(line.text));
  }
  return anchors;
}

std::string Resolve(std::string_view document, std::string_view link) {
  const std::filesystem::path path = std::filesystem::path(FolderOf(document)) / link;
  std::string resolved = path.lexically_normal().generic_string();
  if (resolved.ends_with('/')) resolved.pop_back();
  return resolved;
}

// All matches of an expression in a line, whole.
std::vector<std::string> Matches(std::string_view line, const std::regex& expression) {
  std::vector<std::string> matches;
  const std::string text(line);
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end;
       ++match) {
    matches.push_back(match->str());
  }
  return matches;
}

// Every word that a name in a document may refer to: what the public headers declare, the words of
// the lists (targets, options), and our macros and variables, wherever they are used.
Words KnownNames(const Tree& tree) {
  Words known = {"bobbin"};
  for (const File& file : tree) {
    if (file.path.ends_with(".md")) continue;
    if (IsCMake(file.path)) known.merge(WordsOfList(file.text));
    for (const Token& token : Tokens(file.text)) {
      if (token.text.starts_with("BOBBIN_")) known.emplace(token.text);
    }
    if (!IsPublicHeader(file.path)) continue;
    const Source source(file);
    for (const Token& token : Tokens(source.lines)) known.emplace(token.text);
  }
  return known;
}

}  // namespace

Complaints CheckLists(const Tree& tree) {
  std::map<std::string, Words> lists;
  for (const File& file : tree) {
    if (file.path.ends_with("CMakeLists.txt")) lists[FolderOf(file.path)] = WordsOfList(file.text);
  }
  Complaints complaints;
  for (const File& file : tree) {
    if (!IsSource(file.path) && !IsPublicHeader(file.path)) continue;
    if (!IsNamed(file.path, lists)) complaints.push_back({file.path, 0, "in no CMakeLists.txt"});
  }
  return complaints;
}

Complaints CheckLinks(const Tree& tree) {
  Words paths;
  std::map<std::string, Words> anchors;
  for (const File& file : tree) {
    for (std::string path = file.path; !path.empty(); path = FolderOf(path)) paths.insert(path);
    if (file.path.ends_with(".md")) anchors[file.path] = AnchorsOf(file.text);
  }

  Complaints complaints;
  static const std::regex code(R"(`[^`]*`)");
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  for (const auto& [path, own_anchors] : anchors) {
    const auto file = std::find_if(tree.begin(), tree.end(),
                                   [&, &path = path](const File& f) { return f.path == path; });
    for (const DocumentLine& line : Prose(file->text)) {
      const std::string text = std::regex_replace(std::string(line.text), code, "");
      for (std::string target : Matches(text, link)) {
        target = target.substr(2, target.size() - 3);
        if (target.find("://") != target.npos || target.starts_with("mailto:")) continue;
        const size_t hash = std::min(target.find('#'), target.size());
        const std::string to = hash == 0 ? path : Resolve(path, target.substr(0, hash));
        if (!paths.contains(to)) {
          complaints.push_back({path, line.number, "a dead link: " + target});
        } else if (hash < target.size() && anchors.contains(to) &&
                   !anchors[to].contains(target.substr(hash + 1))) {
          complaints.push_back({path, line.number, "no such heading: " + target});
        }
      }
    }
  }
  return complaints;
}

Complaints CheckNames(const Tree& tree) {
  const Words known = KnownNames(tree);
  Words headers;
  constexpr std::string_view kInclude = "/include/";
  for (const File& file : tree) {
    if (!IsPublicHeader(file.path)) continue;
    headers.insert(file.path.substr(file.path.find(kInclude) + kInclude.size()));
  }

  Complaints complaints;
  static const std::regex header(R"(\bbobbin/\w+/[\w/]+\.h\b)");
  static const std::regex name(R"(\bbobbin(::\w+)+|\bBOBBIN_\w*[A-Z0-9]\b)");
  for (const File& file : tree) {
    // Old versions may have had what is gone.
    if (!file.path.ends_with(".md") || file.path == "CHANGES.md") continue;
    int number = 0;
    for (std::string_view line : SplitLines(file.text)) {
      ++number;
      for (const std::string& match : Matches(line, header)) {
        if (headers.contains(match)) continue;
        complaints.push_back({file.path, number, "no header " + match});
      }
      for (const std::string& match : Matches(line, name)) {
        for (const Token& part : Tokens(match)) {
          if (part.text == "::" || known.contains(part.text)) continue;
          complaints.push_back({file.path, number, "nothing is called " + match});
          break;
        }
      }
    }
  }
  return complaints;
}

}  // namespace bobbin::tidy
