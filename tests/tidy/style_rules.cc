// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/style_rules.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <span>
#include <utility>

namespace bobbin::tidy {
namespace {

using Names = std::vector<std::string_view>;

// Whom a module may include.
struct Arrows {
  std::string_view module;
  Names may_include;
};
const std::vector<Arrows> kArrows = {
    {"core", {"core"}},
    {"sched", {"sched", "core"}},
    {"io", {"io", "sched", "core"}},
    {"cron", {"cron", "sched", "core"}},
    {"db", {"db", "cron", "io", "sched", "core"}},
};

// The simulation: sched's, and only its own files and those of tests may include it.
constexpr std::string_view kSimulation = "testing/";
const Names kSimulationFiles = {"sched/include/bobbin/testing/", "sched/src/simulate.cc",
                                "sched/src/depth_first_chooser.h", "sched/src/random_chooser.h"};

// The files that start OS threads and make them wait.
const Names kOsThreads = {"core/src/os_thread.cc", "sched/src/os_thread.cc"};

// Where the atomics of the standard library are.
const Names kAtomics = {"core/include/bobbin/core/internal/atomic.h"};

// Code that must not be written, what to write instead, and the files that may. A path that ends in
// a slash stands for a folder.
struct Ban {
  std::string_view code;
  std::string_view instead;
  Names except = {};
};
const std::vector<Ban> kBans = {
    {"std::mutex", "bobbin::Mutex", kOsThreads},
    {"std::shared_mutex", "bobbin::SharedMutex"},
    {"std::recursive_mutex", "bobbin::Mutex"},
    {"std::timed_mutex", "bobbin::Mutex::TryLockUntil"},
    {"std::condition_variable", "bobbin::Condition", kOsThreads},
    {"std::condition_variable_any", "bobbin::Condition"},
    {"std::thread", "bobbin::Spawn", kOsThreads},
    {"std::jthread", "bobbin::Spawn", kOsThreads},
    {"std::async", "bobbin::Async"},
    {"std::future", "bobbin::Future"},
    {"std::promise", "bobbin::Promise"},
    {"std::packaged_task", "bobbin::Async"},
    {"std::counting_semaphore", "bobbin::Semaphore"},
    {"std::binary_semaphore", "bobbin::Semaphore"},
    {"std::latch", "bobbin::WaitGroup"},
    {"std::barrier", "bobbin::Barrier"},
    {"std::this_thread::sleep_for", "bobbin::SleepFor"},
    {"std::this_thread::sleep_until", "bobbin::SleepUntil"},
    {"std::atomic", "bobbin::internal::Atomic", kAtomics},
    {"std::atomic_flag", "bobbin::internal::Atomic", kAtomics},
    {"std::atomic_thread_fence", "bobbin::internal::AtomicThreadFence", kAtomics},
    {"std::function", "absl::AnyInvocable"},
    {"std::endl", "'\\n'"},
    {"thread_local", "the accessors of the current thread", {"core/src/current.cc"}},
    {"system_clock", "MonotonicTime, or a clock that is passed in", {"cron/"}},
    {"assert(", "BOBBIN_CHECK or BOBBIN_DCHECK"},
    {"throw", "absl::Status"},
    {"catch",
     "absl::Status",
     {"core/src/task.cc", "core/include/bobbin/core/internal/capture_exception.h",
      "cron/program/options.cc"}},
    {"volatile", "bobbin::internal::Atomic"},
    {"new", "std::make_unique", {"core/include/bobbin/core/internal/body.h"}},
    {"delete", "std::unique_ptr", {"core/include/bobbin/core/internal/body.h"}},
    {"memory_order_consume", "acquire"},
    {"memory_order::consume", "acquire"},
    {"using namespace", "using declarations"},
    {".wait(", "a primitive of ours; an atomic's wait blocks the carrier"},
    {"->wait(", "a primitive of ours; an atomic's wait blocks the carrier"},
};

struct Word {
  std::string_view word;
  std::string_view instead;
};
const std::vector<Word> kWords = {
    {"fiber", "virtual thread"},        {"coroutine", "virtual thread"},
    {"green thread", "virtual thread"}, {"green_thread", "virtual thread"},
    {"greenthread", "virtual thread"},  {"worker", "carrier or platform thread"},
};

constexpr std::string_view kLicence = "// SPDX-License-Identifier: Apache-2.0";
constexpr size_t kColumnsMax = 100;
constexpr int kPairingLinesMax = 6;  // How far above an atomic operation its partner may be named.

bool IsListed(std::string_view path, const Names& names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return name.ends_with('/') ? path.starts_with(name) : path == name;
  });
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Characters, not bytes: those that continue a UTF-8 sequence take no column.
size_t Columns(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool StartsWith(std::span<const Token> tokens, std::span<const Token> pattern) {
  return tokens.size() >= pattern.size() &&
         std::equal(pattern.begin(), pattern.end(), tokens.begin(),
                    [](const Token& a, const Token& b) { return a.text == b.text; });
}

// Words that mean something else beside certain others: `= delete`, `operator new`, `asm volatile`,
// and `::new (place) T`, which allocates nothing.
bool IsOtherMeaning(std::string_view before, std::string_view word, std::string_view after) {
  if (word == "delete") return before == "=" || before == "operator";
  if (word == "new") return before == "operator" || (before == "::" && after == "(");
  if (word == "volatile") return before == "asm" || before == "__asm__";
  return false;
}

// The whole word around text[begin, end).
std::string_view Widen(std::string_view text, size_t begin, size_t end) {
  while (begin > 0 && IsWordCharacter(text[begin - 1])) --begin;
  while (end < text.size() && IsWordCharacter(text[end])) ++end;
  return text.substr(begin, end - begin);
}

// Names that other people gave: the sanitizers' interface, and the kernel's pool of io_uring
// threads.
bool IsForeignName(std::string_view lower_word) {
  return lower_word.starts_with("__tsan_") || lower_word.starts_with("__sanitizer_") ||
         Contains(lower_word, "iowq");
}

// core/include/bobbin/core/mutex.h -> BOBBIN_CORE_MUTEX_H_; core/src/task.h ->
// BOBBIN_CORE_SRC_TASK_H_
std::string GuardOf(std::string_view path) {
  constexpr std::string_view kPublic = "/include/bobbin/";
  const size_t at = path.find(kPublic);
  if (at != path.npos) path.remove_prefix(at + kPublic.size());
  std::string guard = "BOBBIN_";
  for (char c : path) {
    guard +=
        IsWordCharacter(c) ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
  }
  return guard + "_";
}

// Whether a line of code declares a variable of an atomic type, or an array of them.
bool DeclaresAtomic(std::string_view code) {
  if (!Contains(code, "std::atomic") && !Contains(code, "Atomic<")) return false;
  static const std::regex declaration(
      R"(^\s*((static|inline|mutable|constinit|constexpr|alignas\(.*?\))\s+)*)"
      R"((std::array<)?(std::atomic(<.*>|_\w+)|(\w+::)*Atomic<.*>)(\s*,.*>)?)"
      R"(\s+\w+\s*(;|\{|=|\[|ABSL_|$))");
  return std::regex_search(code.begin(), code.end(), declaration);
}

// Which order the tokens begin with: "acquire" for std::memory_order_acquire and for
// std::memory_order::acquire, "" for anything else.
std::string_view MemoryOrderAt(std::span<const Token> tokens) {
  constexpr std::string_view kShort = "memory_order_";
  const std::string_view word = tokens.front().text;
  if (word.starts_with(kShort)) return word.substr(kShort.size());
  if (word == "memory_order" && tokens.size() > 2 && tokens[1].text == "::") return tokens[2].text;
  return {};
}

// What is said about a line, in lower case: in the lines above it, on it, and in a comment that
// goes on below it.
std::string CommentsNear(const Source& source, int line) {
  std::string comments;
  const auto last = static_cast<int>(source.lines.size());
  for (int at = std::max(1, line - kPairingLinesMax); at <= last; ++at) {
    const SourceLine& near = source.lines[static_cast<size_t>(at) - 1];
    if (at > line && (near.comment.empty() || !Trim(near.code).empty())) break;
    comments += ToLower(Trim(near.comment)) + " ";
  }
  return comments;
}

// Whether the text of a comment is a statement rather than a sentence about one. Examples are
// indented by more than the one space that sentences are.
bool IsSwitchedOffCode(std::string_view comment) {
  if (comment.find_first_not_of(' ') > 1) return false;  // An example, or nothing.
  const std::string_view text = Trim(comment);
  if (text == "}" || text == "};") return true;
  if (!text.ends_with(';') && !text.ends_with('{')) return false;
  static const std::regex statement(
      R"(^(return\b.*;|(\} )?else( if \(.*\))? \{|(if|for|while|switch) \(.*|#\w+ .*)"
      R"(|[\w:.<>*&\[\]-]+\(.*\)( const)?( noexcept)? ?[;{])"
      R"(|([\w:<>,*&]+ )?[\w:.\[\]>-]+ [-+*/|&^]?= .*;)"
      R"(|(const |auto |int |bool |char |size_t |std::).*;)"
      R"(|(class|struct|namespace|enum class) [\w:]+ \{)$)");
  return std::regex_search(text.begin(), text.end(), statement);
}

}  // namespace

Source::Source(const File& file) : path(file.path), lines(SplitSource(file.text)) {}

std::string_view ModuleOf(std::string_view path) {
  const std::string_view folder = path.substr(0, path.find('/'));
  for (const Arrows& arrows : kArrows) {
    if (arrows.module == folder) return arrows.module;
  }
  return {};
}

bool IsPublicHeader(std::string_view path) {
  return !ModuleOf(path).empty() && Contains(path, "/include/") && path.ends_with(".h");
}

Complaints CheckLayout(const File& file) {
  Complaints complaints;
  const std::vector<std::string_view> lines = SplitLines(file.text);
  int number = 0;
  bool is_after_blank = true;
  for (std::string_view line : lines) {
    ++number;
    const bool may_be_long =
        file.path.ends_with(".json") ||
        (file.path.ends_with(".md") && (line.starts_with('|') || Contains(line, "://")));
    if (Columns(line) > kColumnsMax && !may_be_long) {
      complaints.push_back({file.path, number, "longer than 100 columns"});
    }
    // gofmt indents with tabs.
    if (Contains(line, "\t") && !file.path.ends_with(".go"))
      complaints.push_back({file.path, number, "a tab"});
    if (line.ends_with(' ') || line.ends_with('\r')) {
      complaints.push_back({file.path, number, "trailing space"});
    }
    if (line.empty() && is_after_blank) {
      complaints.push_back({file.path, number, "a blank line at the top, or two in a row"});
    }
    is_after_blank = line.empty();
  }
  if (!file.text.ends_with('\n')) {
    complaints.push_back({file.path, number, "no newline at the end"});
  }
  if (number > 0 && lines.back().empty()) {
    complaints.push_back({file.path, number, "a blank line at the end"});
  }
  return complaints;
}

Complaints CheckIncludes(const Source& source) {
  Complaints complaints;
  const std::string_view module = ModuleOf(source.path);
  for (size_t i = 0; i < source.lines.size(); ++i) {
    const std::string_view include = IncludeOf(source.lines[i]);
    if (include.empty()) continue;
    const std::string_view target = include.substr(1, include.size() - 2);
    const auto complain = [&](std::string reason) {
      complaints.push_back({source.path, static_cast<int>(i) + 1, std::move(reason)});
    };

    // How it is written.
    constexpr std::string_view kOurs = "bobbin/";
    const bool is_public = target.starts_with(kOurs);
    const bool is_private = !ModuleOf(target).empty();
    if (is_public && include.front() != '<') {
      complain("a public header is included as <bobbin/...>");
    }
    if (is_private && include.front() != '"') complain("a private file is included in quotes");
    if (include.front() == '"' && (!Contains(target, "/") || target.starts_with('.'))) {
      complain("a file is included by its path from the root");
    }
    if (!is_public && !is_private) continue;

    // Whether it may be.
    std::string_view other = ModuleOf(is_public ? target.substr(kOurs.size()) : target);
    if (module.empty()) continue;  // Tests and benchmarks look wherever they like.
    if (is_public && target.substr(kOurs.size()).starts_with(kSimulation)) {
      other = "sched";
      if (!IsListed(source.path, kSimulationFiles)) {
        complain("the product does not know how it is simulated");
      }
    }
    if (is_private && IsPublicHeader(source.path)) {
      complain("a public header includes a private file");
    } else if (is_private && other != module) {
      complain("a private file of another module");
    }
    const auto arrows = std::find_if(kArrows.begin(), kArrows.end(),
                                     [&](const Arrows& a) { return a.module == module; });
    if (!IsListed(other, arrows->may_include)) {
      complain(std::string(module) + " does not know " + std::string(other));
    }
  }
  return complaints;
}

Complaints CheckBannedCode(const Source& source) {
  if (ModuleOf(source.path).empty()) return {};
  Complaints complaints;
  const std::vector<Token> tokens = Tokens(source.lines);
  for (const Ban& ban : kBans) {
    if (IsListed(source.path, ban.except)) continue;
    const std::vector<Token> pattern = Tokens(ban.code);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!StartsWith(std::span(tokens).subspan(i), pattern)) continue;
      if (i > 0 && i + 1 < tokens.size() &&
          IsOtherMeaning(tokens[i - 1].text, tokens[i].text, tokens[i + 1].text)) {
        continue;
      }
      complaints.push_back({source.path, tokens[i].line,
                            "`" + std::string(ban.code) + "`: use " + std::string(ban.instead)});
    }
  }
  return complaints;
}

Complaints CheckVocabulary(const Source& source) {
  if (ModuleOf(source.path).empty()) return {};
  Complaints complaints;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    const std::string line = ToLower(source.lines[i].raw);
    for (const Word& word : kWords) {
      for (size_t at = line.find(word.word); at != line.npos; at = line.find(word.word, at + 1)) {
        if (IsForeignName(Widen(line, at, at + word.word.size()))) continue;
        complaints.push_back(
            {source.path, static_cast<int>(i) + 1,
             "the word " + std::string(word.word) + ": say " + std::string(word.instead)});
      }
    }
  }
  return complaints;
}

Complaints CheckHeading(const Source& source) {
  const std::vector<SourceLine>& lines = source.lines;
  const auto line = [&](size_t index) -> std::string_view {
    if (index >= lines.size()) return {};
    return lines[index].raw;
  };
  // The first line of a program that must not compile says which message it expects.
  if (source.path.ends_with(".fail.cc")) return {};
  if (line(0) != kLicence) {
    return {{source.path, 1, "the first line is not `" + std::string(kLicence) + "`"}};
  }
  if (!source.path.ends_with(".h")) return {};

  Complaints complaints;
  if (line(1) != "//" || !line(2).starts_with("// ") || !Contains(line(2), ": ")) {
    complaints.push_back({source.path, 3, "not `// Name: what it is.` after the licence"});
  }
  std::string contract;
  size_t end = 0;
  while (line(end).starts_with("//")) contract.append(line(end++)).append("\n");
  if (IsPublicHeader(source.path) && !Contains(source.path, "/internal/") &&
      !Contains(contract, "Called from")) {
    complaints.push_back({source.path, 3, "the contract does not say what it is `Called from`"});
  }
  const std::string guard = GuardOf(source.path);
  if (line(end + 1) != "#ifndef " + guard || line(end + 2) != "#define " + guard) {
    complaints.push_back({source.path, static_cast<int>(end) + 2, "the guard is not " + guard});
  }
  return complaints;
}

Complaints CheckAtomics(const Source& source) {
  if (ModuleOf(source.path).empty()) return {};
  Complaints complaints;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    if (!DeclaresAtomic(source.lines[i].code)) continue;
    // One comment may stand above a group of them.
    size_t first = i;
    while (first > 0 && source.lines[first].comment.empty() &&
           (first == i || DeclaresAtomic(source.lines[first].code))) {
      --first;
    }
    if (source.lines[first].comment.empty()) {
      complaints.push_back({source.path, static_cast<int>(i) + 1,
                            "an atomic without a comment: who writes, who reads, what it orders"});
    }
  }
  return complaints;
}

Complaints CheckMemoryOrders(const Source& source) {
  if (ModuleOf(source.path).empty()) return {};
  Complaints complaints;
  const std::vector<Token> tokens = Tokens(source.lines);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view order = MemoryOrderAt(std::span(tokens).subspan(i));
    if (order.empty() || order == "seq_cst") continue;

    const std::string nearby = CommentsNear(source, tokens[i].line);
    if (Contains(nearby, "pairs with") || Contains(nearby, "pair with")) continue;
    if (order == "relaxed" && Contains(nearby, "relaxed:")) continue;
    const std::string missing = order == "relaxed" ? "relaxed: why" : "pairs with";
    complaints.push_back(
        {source.path, tokens[i].line, std::string(order) + " without `" + missing + "` nearby"});
  }
  return complaints;
}

Complaints CheckComments(const Source& source) {
  Complaints complaints;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    const SourceLine& line = source.lines[i];
    for (const Token& token : Tokens(line.comment)) {
      if (token.text == "TODO" || token.text == "FIXME" || token.text == "XXX") {
        complaints.push_back({source.path, static_cast<int>(i) + 1,
                              std::string(token.text) + ": do it now, or not at all"});
      }
    }
    if (Trim(line.code).empty() && IsSwitchedOffCode(line.comment)) {
      complaints.push_back({source.path, static_cast<int>(i) + 1, "code in a comment"});
    }
  }
  return complaints;
}

Complaints CheckMarkdown(const File& file) {
  Complaints complaints;
  int titles = 0;
  int number = 0;
  bool is_in_fence = false;
  for (std::string_view line : SplitLines(file.text)) {
    ++number;
    if (Trim(line).starts_with("```")) is_in_fence = !is_in_fence;
    if (!is_in_fence && line.starts_with("# ") && ++titles > 1) {
      complaints.push_back({file.path, number, "a second title"});
    }
  }
  if (titles == 0) complaints.push_back({file.path, 0, "no title"});
  return complaints;
}

Complaints CheckFile(const File& file) {
  // The licence has its authors' layout, a table its tabs, and a picture none.
  if (file.path == "LICENSE" || file.path.ends_with(".tsv") ||
      Contains(file.text, std::string_view("\0", 1))) {
    return {};
  }

  Complaints complaints = CheckLayout(file);
  const auto add = [&](const Complaints& more) {
    complaints.insert(complaints.end(), more.begin(), more.end());
  };
  if (file.path.ends_with(".md")) add(CheckMarkdown(file));
  if (file.path.ends_with(".h") || file.path.ends_with(".cc")) {
    const Source source(file);
    for (auto check : {CheckIncludes, CheckBannedCode, CheckVocabulary, CheckHeading, CheckAtomics,
                       CheckMemoryOrders, CheckComments}) {
      add(check(source));
    }
  }
  return complaints;
}

}  // namespace bobbin::tidy
