// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/style_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bobbin::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "3: a tab" for each complaint that a rule has about a file.
template <class Input>
std::vector<std::string> Apply(Complaints (*rule)(const Input&), std::string path,
                               std::string text) {
  std::vector<std::string> found;
  for (const Complaint& complaint : rule(Input(File{std::move(path), std::move(text)}))) {
    found.push_back(std::to_string(complaint.line) + ": " + complaint.reason);
  }
  return found;
}

TEST(LayoutTest, ColumnsAreCharacters) {
  const std::string ascii(100, 'x');
  std::string arrows;
  for (int i = 0; i < 100; ++i) arrows += "→";
  EXPECT_THAT(Apply(CheckLayout, "a.cc", ascii + "\n" + arrows + "\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckLayout, "a.cc", ascii + "x\n" + arrows + "x\n"),
              ElementsAre("1: longer than 100 columns", "2: longer than 100 columns"));
}

TEST(LayoutTest, WhatCannotBeBrokenMayBeLonger) {
  const std::string words(101, 'x');
  EXPECT_THAT(Apply(CheckLayout, "a.md", "| " + words + " |\nhttps://" + words + "\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckLayout, "a.json", words + "\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckLayout, "a.md", words + "\n"), ElementsAre("1: longer than 100 columns"));
}

TEST(LayoutTest, WhiteSpaceIsTidy) {
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "a\n\nb\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "\ta\nb \nc\r\n"),
              ElementsAre("1: a tab", "2: trailing space", "3: trailing space"));
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "a\n\n\nb\n"),
              ElementsAre("3: a blank line at the top, or two in a row"));
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "\na\n"),
              ElementsAre("1: a blank line at the top, or two in a row"));
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "a\n\n"), ElementsAre("2: a blank line at the end"));
  EXPECT_THAT(Apply(CheckLayout, "a.cc", "a\nb"), ElementsAre("2: no newline at the end"));
}

TEST(IncludesTest, FollowTheArrows) {
  const std::string sched = "#include <bobbin/sched/spawn.h>\n";
  for (const char* path : {"sched/src/a.cc", "io/src/a.cc", "cron/src/a.cc", "db/src/a.cc",
                           "db/include/bobbin/db/a.h", "tests/core/a_test.cc", "bench/core/a.cc"}) {
    EXPECT_THAT(Apply(CheckIncludes, path, sched), IsEmpty()) << path;
  }
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc", sched),
              ElementsAre("1: core does not know sched"));
  EXPECT_THAT(Apply(CheckIncludes, "cron/src/a.cc", "\n#include <bobbin/io/tcp.h>\n"),
              ElementsAre("2: cron does not know io"));
  EXPECT_THAT(Apply(CheckIncludes, "io/src/a.cc", "#include <bobbin/db/sqlite.h>\n"),
              ElementsAre("1: io does not know db"));
}

TEST(IncludesTest, PrivateFilesStayPrivate) {
  const std::string task = "#include \"core/src/task.h\"\n";
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc", task), IsEmpty());
  EXPECT_THAT(Apply(CheckIncludes, "tests/core/a_test.cc", task), IsEmpty());
  EXPECT_THAT(Apply(CheckIncludes, "bench/core/a_bench.cc", task), IsEmpty());
  EXPECT_THAT(Apply(CheckIncludes, "sched/src/a.cc", task),
              ElementsAre("1: a private file of another module"));
  EXPECT_THAT(Apply(CheckIncludes, "core/include/bobbin/core/a.h", task),
              ElementsAre("1: a public header includes a private file"));
}

TEST(IncludesTest, AreWrittenInOneWay) {
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc", "#include \"bobbin/core/mutex.h\"\n"),
              ElementsAre("1: a public header is included as <bobbin/...>"));
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc", "#include <core/src/task.h>\n"),
              ElementsAre("1: a private file is included in quotes"));
  EXPECT_THAT(Apply(CheckIncludes, "bench/echo/a.cc", "#include \"b.h\"\n#include \"../b.h\"\n"),
              ElementsAre("1: a file is included by its path from the root",
                          "2: a file is included by its path from the root"));
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc",
                    "#include <vector>\n#include \"absl/status/status.h\"\n"),
              IsEmpty());
}

TEST(IncludesTest, OnlyTheSimulationKnowsItself) {
  const std::string testing = "#include <bobbin/testing/simulate.h>\n";
  for (const char* path : {"sched/src/simulate.cc", "sched/include/bobbin/testing/a.h",
                           "tests/core/a_test.cc", "docs/examples/a.cc"}) {
    EXPECT_THAT(Apply(CheckIncludes, path, testing), IsEmpty()) << path;
  }
  EXPECT_THAT(Apply(CheckIncludes, "sched/src/carrier.cc", testing),
              ElementsAre("1: the product does not know how it is simulated"));
  EXPECT_THAT(Apply(CheckIncludes, "core/src/a.cc", testing),
              ElementsAre("1: the product does not know how it is simulated",
                          "1: core does not know sched"));
}

TEST(BannedCodeTest, IsFoundInProductCodeOnly) {
  EXPECT_THAT(Apply(CheckBannedCode, "core/src/a.cc", "\nstd::mutex m;\n"),
              ElementsAre("2: `std::mutex`: use bobbin::Mutex"));
  EXPECT_THAT(Apply(CheckBannedCode, "tests/core/a_test.cc", "std::mutex m;\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckBannedCode, "core/src/a.cc", "// std::mutex\nf(\"std::mutex\");\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckBannedCode, "core/src/a.cc", "#include <mutex>\nmy::mutex m;\n"),
              IsEmpty());
}

TEST(BannedCodeTest, HasNamedExceptions) {
  EXPECT_THAT(Apply(CheckBannedCode, "core/src/current.cc", "thread_local int a;\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckBannedCode, "cron/src/a.cc", "std::chrono::system_clock::now();\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckBannedCode, "core/src/task.cc", "try { f(); } catch (...) {}\n"),
              IsEmpty());
}

TEST(BannedCodeTest, CoversEachWord) {
  for (const char* line : {"std::condition_variable c;",
                           "std::thread t;",
                           "auto a = std::async(f);",
                           "std::future<int> f;",
                           "std::atomic<int> a;",
                           "std::atomic_flag a;",
                           "std::atomic_thread_fence(std::memory_order_seq_cst);",
                           "thread_local int a;",
                           "std::this_thread::sleep_for(d);",
                           "std::this_thread::sleep_until(t);",
                           "using Clock = std::chrono::system_clock;",
                           "assert(a);",
                           "throw 1;",
                           "catch (...) {",
                           "volatile int a;",
                           "std::function<void()> f;",
                           "auto* a = new int;",
                           "delete a;",
                           "a.load(std::memory_order_consume);",
                           "using namespace std;",
                           "out << std::endl;",
                           "state.wait(1);",
                           "state->wait(1);"}) {
    EXPECT_EQ(Apply(CheckBannedCode, "core/src/a.cc", line).size(), 1U) << line;
  }
}

TEST(BannedCodeTest, LeavesOtherMeaningsAlone) {
  for (const char* line :
       {"std::atomic_ref(*word).load();", "A(const A&) = delete;", "void* operator new(size_t);",
        "::new (place) T();", "asm volatile(\"\");", "__asm__ volatile(\"\");",
        "static_assert(true);", "std::this_thread::get_id();", "std::future_status s;",
        "f(a.wait_count);", "int renew;", "queue.Wait();"}) {
    EXPECT_THAT(Apply(CheckBannedCode, "core/src/a.cc", line), IsEmpty()) << line;
  }
}

TEST(VocabularyTest, OneWordForOneThing) {
  EXPECT_THAT(Apply(CheckVocabulary, "core/src/a.cc", "// Starts a fiber.\n"),
              ElementsAre("1: the word fiber: say virtual thread"));
  EXPECT_THAT(Apply(CheckVocabulary, "sched/src/a.cc", "int idle_workers;\n"),
              ElementsAre("1: the word worker: say carrier or platform thread"));
  EXPECT_THAT(Apply(CheckVocabulary, "core/src/a.cc", "// Green threads and Coroutines.\n").size(),
              2U);
  EXPECT_THAT(Apply(CheckVocabulary, "bench/a.cc", "// Boost.Fiber\n"), IsEmpty());
}

TEST(VocabularyTest, ForeignNamesStay) {
  EXPECT_THAT(Apply(CheckVocabulary, "core/src/a.cc",
                    "__tsan_switch_to_fiber(f, 0);\n__sanitizer_start_switch_fiber(a, b, c);\n"
                    "io_uring_register_iowq_max_workers(ring, max);\nfcontext_t context;\n"),
              IsEmpty());
}

// A public header that is as it should be, but for what a test replaces in it.
std::string Header(const std::string& from = "", const std::string& to = "") {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "//\n"
      "// Event: set once, waited for by many.\n"
      "//\n"
      "//   Called from   any thread.\n"
      "\n"
      "#ifndef BOBBIN_CORE_EVENT_H_\n"
      "#define BOBBIN_CORE_EVENT_H_\n"
      "#endif  // BOBBIN_CORE_EVENT_H_\n";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(HeadingTest, APublicHeaderHasAContract) {
  const std::string path = "core/include/bobbin/core/event.h";
  EXPECT_THAT(Apply(CheckHeading, path, Header()), IsEmpty());
  EXPECT_THAT(Apply(CheckHeading, path, Header("Called from", "Called by  ")),
              ElementsAre("3: the contract does not say what it is `Called from`"));
  EXPECT_THAT(Apply(CheckHeading, path, Header("// Event: set", "// Set")),
              ElementsAre("3: not `// Name: what it is.` after the licence"));
  EXPECT_THAT(Apply(CheckHeading, path, Header("ifndef BOBBIN_CORE", "ifndef BOBBIN_IO")),
              ElementsAre("7: the guard is not BOBBIN_CORE_EVENT_H_"));
  EXPECT_THAT(Apply(CheckHeading, path, Header("Apache-2.0", "MIT")),
              ElementsAre(HasSubstr("1: the first line is not")));
}

TEST(HeadingTest, APrivateHeaderNeedsNoContract) {
  EXPECT_THAT(
      Apply(CheckHeading, "core/src/event.h", Header("//   Called from   any thread.", "//")),
      ElementsAre("7: the guard is not BOBBIN_CORE_SRC_EVENT_H_"));
}

TEST(HeadingTest, EverySourceHasTheLicence) {
  EXPECT_THAT(Apply(CheckHeading, "tests/a.cc", "// SPDX-License-Identifier: Apache-2.0\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckHeading, "tests/a.cc", "int a;\n").size(), 1U);
  EXPECT_THAT(Apply(CheckHeading, "tests/a.cc", "").size(), 1U);
  EXPECT_THAT(Apply(CheckHeading, "tests/compile_fail/a.fail.cc", "// EXPECT: x\n"), IsEmpty());
}

TEST(AtomicsTest, SayWhoWritesAndReads) {
  EXPECT_THAT(Apply(CheckAtomics, "core/src/a.h",
                    "// Written by the owner.\nstd::atomic<int> a_;\nstd::atomic<int> b_{0};\n"
                    "\nalignas(64) std::atomic<bool> c_{false};  // Anyone.\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckAtomics, "core/src/a.h",
                    "int x;\nstd::atomic<int> a_;\n\nstatic inline std::atomic<A<B>> b_ = {};\n"
                    "std::atomic_flag c_;\nstd::array<std::atomic<int>, 4> d_;\n"
                    "bobbin::internal::Atomic<A*> e_{nullptr};\n"),
              ElementsAre(HasSubstr("2: "), HasSubstr("4: "), HasSubstr("5: "), HasSubstr("6: "),
                          HasSubstr("7: ")));
}

TEST(AtomicsTest, ReferencesAndCallsAreNone) {
  EXPECT_THAT(Apply(CheckAtomics, "core/src/a.h",
                    "void F(std::atomic<int>& a);\nstd::atomic<int>& b = c;\n"
                    "std::atomic_thread_fence(std::memory_order_seq_cst);\n"
                    "std::atomic<int>* d = &c;\n"),
              IsEmpty());
}

TEST(MemoryOrdersTest, NameTheirPartner) {
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "// Pairs\n// with the release in Push.\na.load(std::memory_order_acquire);\n"
                    "\n\n\n\n\na.store(1, std::memory_order::release);\n"),
              ElementsAre("9: release without `pairs with` nearby"));
}

TEST(MemoryOrdersTest, ACommentMayGoOnBelow) {
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "a.load(std::memory_order_acquire);  // Pairs\n// with Push.\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "a.load(std::memory_order_acquire);\nf();  // Pairs with Push.\n"),
              ElementsAre("1: acquire without `pairs with` nearby"));
}

TEST(MemoryOrdersTest, RelaxedMayGiveAReason) {
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "a.load(std::memory_order_relaxed);  // Relaxed: a statistic.\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "a.load(std::memory_order_acquire);  // Relaxed: a statistic.\n"
                    "\n\n\n\n\n\na.load(std::memory_order_relaxed);\n"),
              ElementsAre("1: acquire without `pairs with` nearby",
                          "8: relaxed without `relaxed: why` nearby"));
}

TEST(MemoryOrdersTest, TheStrongestNeedsNone) {
  EXPECT_THAT(Apply(CheckMemoryOrders, "core/src/a.cc",
                    "a.load(std::memory_order_seq_cst);\na.load(std::memory_order::seq_cst);\n"
                    "void F(std::memory_order order);\n"),
              IsEmpty());
}

TEST(CommentsTest, NothingIsLeftForLater) {
  for (const char* word : {"TODO", "FIXME", "XXX"}) {
    EXPECT_EQ(Apply(CheckComments, "core/src/a.cc", std::string("// ") + word + ": more\n").size(),
              1U);
    EXPECT_THAT(Apply(CheckComments, "core/src/a.cc", std::string("f(\"") + word + "\");\n"),
                IsEmpty());
  }
}

TEST(CommentsTest, CodeInThemIsCode) {
  for (const char* line : {"// return a;", "// if (a) {", "// } else {", "// }", "// a = b + 1;",
                           "// int a;", "//f(a, b);", "// queue_.Push(task);",
                           "// const auto a = f();", "// for (int a : b) {", "// class A {"}) {
    EXPECT_THAT(Apply(CheckComments, "core/src/a.cc", line), ElementsAre("1: code in a comment"))
        << line;
  }
}

TEST(CommentsTest, SentencesAndExamplesAreNot) {
  for (const char* line :
       {"// Ends when the queue is empty; then", "// first the owner, then (if any) the thief;",
        "//   Semaphore slots(16);", "//     return a;", "int a;  // a = b;",
        "// See Push() below.", "// when Push() has returned;",
        "// What it returns: a task, or null;"}) {
    EXPECT_THAT(Apply(CheckComments, "core/src/a.cc", line), IsEmpty()) << line;
  }
}

TEST(MarkdownTest, HasOneTitle) {
  EXPECT_THAT(Apply(CheckMarkdown, "a.md", "# One\n\n## Two\n\n```\n# a comment\n```\n"),
              IsEmpty());
  EXPECT_THAT(Apply(CheckMarkdown, "a.md", "# One\n\n# Two\n"), ElementsAre("3: a second title"));
  EXPECT_THAT(Apply(CheckMarkdown, "a.md", "One\n"), ElementsAre("0: no title"));
}

TEST(FileTest, AppliesWhatFitsTheKind) {
  EXPECT_THAT(Apply(CheckFile, "core/src/a.cc", "std::mutex m; \n").size(), 3U);
  EXPECT_THAT(Apply(CheckFile, "docs/a.md", "std::mutex m; \n").size(), 2U);
  EXPECT_THAT(Apply(CheckFile, "LICENSE", "\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckFile, "tests/cron/data/a.tsv", "a\tb\n"), IsEmpty());
  EXPECT_THAT(Apply(CheckFile, "docs/a.png", std::string("\0 \n\n\n", 5)), IsEmpty());
}

}  // namespace
}  // namespace bobbin::tidy
