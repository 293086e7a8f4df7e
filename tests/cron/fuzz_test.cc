// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's entry, called with seeded bytes.

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/cron/parser_fuzz.h"
#include "tests/cron/tsv.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace bobbin::test {
namespace {

// Bytes that mean something, more often than those that do not.
char RandomByte(Random& random) {
  constexpr std::string_view kMeaningful = "0123456789 ***,,--//?LlWw##JANFEBSUNMONFRI@\t";
  return random.OneIn(8) ? static_cast<char>(random.Below(256))
                         : kMeaningful[random.Below(kMeaningful.size())];
}

TEST(ParserFuzzTest, RandomBytesAreAnExpressionOrAMistake) {
  Random random(Seed());
  for (int round = 0; round < Rounds(50'000); ++round) {
    std::string text(random.Below(40), ' ');
    for (char& c : text) c = RandomByte(random);
    ParseAnything(text);
  }
}

TEST(ParserFuzzTest, SoAreMutationsOfTheTables) {
  Random random(Seed());
  std::vector<std::string> seeds = {"@yearly", "-"};
  for (const char* table : {"vectors.tsv", "invalid.tsv", "decided.tsv"}) {
    for (const TsvRow& row : ReadTsv(table)) seeds.push_back(row[0]);
  }
  for (const std::string& seed : seeds) ParseAnything(seed);
  for (int round = 0; round < Rounds(50'000); ++round) {
    std::string text = seeds[random.Below(seeds.size())];
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const size_t at = random.Below(text.size() + 1);
      switch (random.Below(4)) {
        case 0:
          text.insert(at, 1, RandomByte(random));
          break;
        case 1:
          if (at < text.size()) text.erase(at, 1 + random.Below(3));
          break;
        case 2:
          if (at < text.size()) text[at] = RandomByte(random);
          break;
        default: {
          // A piece of another one.
          const std::string& other = seeds[random.Below(seeds.size())];
          text.insert(at, other.substr(random.Below(other.size() + 1), random.Below(8)));
        }
      }
    }
    ParseAnything(text);
  }
}

TEST(ParserFuzzTest, SoAreLongTexts) {
  for (const char* piece : {"*", " ", ",", "-", "/", "1,", "L", "#", "* ", "9", "?", "@", "\xff"}) {
    std::string text = "0 0 0 ";
    for (int i = 0; i < 20'000; ++i) text += piece;
    ParseAnything(text);
    ParseAnything(text + " * *");
  }
}

}  // namespace
}  // namespace bobbin::test
