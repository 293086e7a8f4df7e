// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/source_text.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bobbin::tidy {
namespace {

using testing::ElementsAre;

std::vector<std::string> CodeOf(std::string_view text) {
  std::vector<std::string> code;
  for (const SourceLine& line : SplitSource(text)) code.push_back(line.code);
  return code;
}

std::vector<std::string> CommentsOf(std::string_view text) {
  std::vector<std::string> comments;
  for (const SourceLine& line : SplitSource(text)) comments.push_back(line.comment);
  return comments;
}

std::vector<std::string_view> TextsOf(std::string_view code) {
  std::vector<std::string_view> texts;
  for (const Token& token : Tokens(code)) texts.push_back(token.text);
  return texts;
}

TEST(SourceTextTest, ALineIsCodeAndComment) {
  EXPECT_THAT(CodeOf("int a;  // why\n// all\nint b;\n"), ElementsAre("int a;  ", "", "int b;"));
  EXPECT_THAT(CommentsOf("int a;  // why\n// all\nint b;\n"), ElementsAre(" why", " all", ""));
}

TEST(SourceTextTest, ABlockCommentSpansLines) {
  EXPECT_THAT(CodeOf("a /* b\nc */ d"), ElementsAre("a ", " d"));
  EXPECT_THAT(CommentsOf("a /* b\nc */ d"), ElementsAre(" b", "c "));
}

TEST(SourceTextTest, LiteralsAreEmptied) {
  EXPECT_THAT(CodeOf(R"(f("throw // no", '"', "\"new\"", 'x');)"),
              ElementsAre(R"(f("", '', "", '');)"));
}

TEST(SourceTextTest, ARawStringEndsAtItsDelimiter) {
  EXPECT_THAT(CodeOf("f(R\"x(\nthrow )\" \n)x\", a);"), ElementsAre("f(R\"\"", "", ", a);"));
}

TEST(SourceTextTest, AQuoteInANumberIsASeparator) {
  EXPECT_THAT(CodeOf("f(1'000, 0x'ff, u8'a', 'b');"), ElementsAre("f(1'000, 0x'ff, u8'', '');"));
}

TEST(SourceTextTest, AnOpenLiteralEndsWithItsLine) {
  EXPECT_THAT(CodeOf("#error don't\nint a;"), ElementsAre("#error don''", "int a;"));
}

TEST(SourceTextTest, AContinuedLiteralKeepsTheCountOfLines) {
  EXPECT_THAT(CodeOf("a = \"one\\\ntwo\";\nint b;"), ElementsAre("a = \"\"", ";", "int b;"));
}

TEST(SourceTextTest, TokensAreWordsAndMarks) {
  EXPECT_THAT(
      TextsOf("std::mutex m_; p->x(1.5);"),
      ElementsAre("std", "::", "mutex", "m_", ";", "p", "->", "x", "(", "1", ".", "5", ")", ";"));
}

TEST(SourceTextTest, TokensKnowTheirLine) {
  const std::vector<SourceLine> lines = SplitSource("#include <new>\na\n\nb\n");
  const std::vector<Token> tokens = Tokens(lines);
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0].line, 2);
  EXPECT_EQ(tokens[1].line, 4);
}

TEST(SourceTextTest, AnIncludeIsFoundWithItsQuotes) {
  const auto include = [](std::string_view text) {
    return std::string(IncludeOf(SplitSource(text).front()));
  };
  EXPECT_EQ(include("#include <bobbin/core/mutex.h>"), "<bobbin/core/mutex.h>");
  EXPECT_EQ(include("#  include \"core/src/task.h\"  // Why."), "\"core/src/task.h\"");
  EXPECT_EQ(include("// #include <vector>"), "");
  EXPECT_EQ(include("#define X"), "");
}

}  // namespace
}  // namespace bobbin::tidy
