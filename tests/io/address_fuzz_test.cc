// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's entry, called with seeded bytes.

#include "tests/io/address_fuzz.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace bobbin::test {
namespace {

// Bytes that mean something, more often than those that do not.
char RandomByte(Random& random) {
  constexpr std::string_view kMeaningful = "0123456789abcdefF....::::[]%%lo-x \t";
  return random.OneIn(8) ? static_cast<char>(random.Below(256))
                         : kMeaningful[random.Below(kMeaningful.size())];
}

const std::vector<std::string>& Corpus() {
  static const std::vector<std::string> corpus = {
      "127.0.0.1:7000",
      "0.0.0.0:0",
      "255.255.255.255:65535",
      "01.2.3.4:5",
      "1.2.3:4",
      "[::1]:80",
      "[::]:0",
      "[2001:db8::7]:443",
      "[::ffff:1.2.3.4]:1",
      "[1:2:3:4:5:6:7:8]:9",
      "[1:2:3:4:5:6:1.2.3.4]:9",
      "[fe80::1%lo]:80",
      "[fe80::1%1]:80",
      "[fe80::1%4294967295]:80",
      "[fe80::1%0]:80",
      "::1",
      "fe80::1%lo",
      "10.0.0.1",
      "example.org:80",
      "localhost:http",
      "unix:/run/x",
      ":80",
      "[]:80",
      "[:80",
      "]:80",
      std::string("127.0.0.1\0:80", 13),
      std::string("[fe80::1%lo\0]:80", 16),
  };
  return corpus;
}

TEST(AddressFuzzTest, RandomBytesAreAnAddressOrAnError) {
  Random random(Seed());
  for (int round = 0; round < Rounds(50'000); ++round) {
    std::string text(random.Below(40), ' ');
    for (char& c : text) c = RandomByte(random);
    ParseAnyAddress(text);
  }
}

TEST(AddressFuzzTest, SoAreMutationsOfAddresses) {
  Random random(Seed());
  for (const std::string& text : Corpus()) ParseAnyAddress(text);
  for (int round = 0; round < Rounds(50'000); ++round) {
    std::string text = Corpus()[random.Below(Corpus().size())];
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
          const std::string& other = Corpus()[random.Below(Corpus().size())];
          text.insert(at, other.substr(random.Below(other.size() + 1), random.Below(8)));
        }
      }
    }
    ParseAnyAddress(text);
  }
}

TEST(AddressFuzzTest, SoAreLongTexts) {
  for (const char* piece : {":", "[", "]", "%", ".", "0", "0:", "::", "1.", "\xff", "a"}) {
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += piece;
    ParseAnyAddress(text);
    ParseAnyAddress("[" + text + "]:80");
    ParseAnyAddress("[fe80::1%" + text + "]:80");
    ParseAnyAddress("1.2.3.4:" + text);
  }
}

}  // namespace
}  // namespace bobbin::test
