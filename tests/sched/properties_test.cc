// SPDX-License-Identifier: Apache-2.0

#include "sched/src/properties.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/random.h"
#include "tests/support/seed.h"

namespace bobbin::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs Read(std::string_view text) {
  Pairs pairs;
  const Properties read = ParseProperties(text, "f");
  EXPECT_THAT(read.mistakes, IsEmpty());
  for (const Property& property : read.properties) pairs.emplace_back(property.key, property.value);
  return pairs;
}

std::vector<std::string> MistakesIn(std::string_view text) {
  return ParseProperties(text, "f").mistakes;
}

TEST(PropertiesTest, EverySeparatorEndsAKey) {
  EXPECT_THAT(Read("a=1\nb:2\nc 3\nd\t4\n  e  =  5\nf\n g =\n"),
              ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3"), Pair("d", "4"),
                          Pair("e", "5"), Pair("f", ""), Pair("g", "")));
  EXPECT_THAT(Read("a = = 1\nb : = 2\nc=http://x:1/?y=z"),
              ElementsAre(Pair("a", "= 1"), Pair("b", "= 2"), Pair("c", "http://x:1/?y=z")));
}

TEST(PropertiesTest, CommentsAndBlankLinesAreLeftOut) {
  EXPECT_THAT(Read("# a=1\n  ! b=2 \\\n\n \t\f\nc=3 # not a comment\n"),
              ElementsAre(Pair("c", "3 # not a comment")));
}

TEST(PropertiesTest, ALineGoesOnAfterAnOddNumberOfBackslashes) {
  EXPECT_THAT(Read("a = one, \\\n    two\\\n\nb = 1\\\\\nc\\\n  d = 2\n"),
              ElementsAre(Pair("a", "one, two"), Pair("b", "1\\"), Pair("cd", "2")));
  // What follows is no comment, and the file may end there.
  EXPECT_THAT(Read("a = 1\\\n # 2\\"), ElementsAre(Pair("a", "1# 2")));
}

TEST(PropertiesTest, EveryEndOfLineIsOne) {
  EXPECT_THAT(Read("a=1\r\nb=2\rc=3\\\r\n4\nd=5"),
              ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "34"), Pair("d", "5")));
  const Properties read = ParseProperties("\r\n\r\n\rx=1", "f");
  EXPECT_EQ(read.properties.at(0).line, 4);
}

TEST(PropertiesTest, EscapesAreReplaced) {
  EXPECT_THAT(Read(R"(a\ b\:c\=d = \ x\ty\\\q\u00e4\u20AC\uD83D\uDE00)"),
              ElementsAre(Pair("a b:c=d", " x\ty\\qä€😀")));
  EXPECT_THAT(Read("\\#a = 1"), ElementsAre(Pair("#a", "1")));
}

TEST(PropertiesTest, TheTextIsUtf8) {
  EXPECT_THAT(Read("\xEF\xBB\xBFgrüße = schön€😀\n"), ElementsAre(Pair("grüße", "schön€😀")));
  for (std::string_view bad : {"\xFF", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                               "\xF4\x90\x80\x80", "\xC3", "\x80", "\xF0\x9F\x98"}) {
    EXPECT_THAT(MistakesIn("a=1\nb=" + std::string(bad) + "\n"),
                ElementsAre("f:2: it is not UTF-8"))
        << bad;
  }
}

TEST(PropertiesTest, EveryMistakeIsToldWithItsLine) {
  EXPECT_THAT(
      MistakesIn("a=\\u12g4\n"
                 "= 2\n"
                 "c = 1 \\\n"
                 "  2 \\uD800 \\\n"
                 "  3 \\uDC00\n"
                 "c = 2\n"
                 "d = \\u0000\\u12\n"),
      ElementsAre("f:1: \\u is followed by four hexadecimal digits",
                  "f:2: there is no key before the value", "f:4: half of a pair of \\u escapes",
                  "f:5: half of a pair of \\u escapes", "f:6: \"c\" is set in line 3 already",
                  "f:7: it holds a zero", "f:7: \\u is followed by four hexadecimal digits"));
  EXPECT_THAT(MistakesIn(std::string_view("a=\0", 3)), ElementsAre("f:1: it holds a zero"));
}

TEST(PropertiesTest, AnyBytesAreReadToTheirEnd) {
  test::Random random(test::Seed());
  constexpr std::string_view kLetters = "ab=: \\\n\r\t#!u0D8F\xC3\xA4${}";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t length = random.Below(40); length > 0; --length) {
      text += kLetters[random.Below(kLetters.size())];
    }
    const Properties read = ParseProperties(text, "f");
    for (const Property& property : read.properties) {
      ASSERT_FALSE(property.key.empty()) << text;
      ASSERT_GE(property.line, 1) << text;
    }
  }
}

}  // namespace
}  // namespace bobbin::internal
