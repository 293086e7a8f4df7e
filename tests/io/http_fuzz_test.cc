// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's entry, called with seeded bytes.

#include "tests/io/http_fuzz.h"

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
  constexpr std::string_view kMeaningful("\r\n\r\n\r\n ::,;\t0123aF-/?#[]@.H\0\x7f", 29);
  return random.OneIn(8) ? static_cast<char>(random.Below(256))
                         : kMeaningful[random.Below(kMeaningful.size())];
}

const std::vector<std::string>& Corpus() {
  static const std::vector<std::string> corpus = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://x/a?b HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n",
      "PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nA:\t b c \r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nhost:x\r\nConnection: upgrade\r\nUpgrade: y\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\n",
      "HTTP/1.1 099 Below\r\n\r\n",
      "HTTP/1.0 404 \r\nServer: y\r\nConnection: Keep-Alive\r\n\r\n",
      "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
      "5\r\nhello\r\n10;name=value\r\n0123456789abcdef\r\n0\r\n\r\n",
      "1\r\na\r\n0\r\nTrailer: value\r\n\r\n",
      "ffffffffffffffff\r\nx",
      "00000000000000001\r\na\r\n0\r\n\r\n",
      "http://example.org/a?b#c",
      "https://[::1]:8443/",
      "//other.example",
      "?query",
      "../up",
  };
  return corpus;
}

TEST(HttpFuzzTest, RandomBytesAreMessagesOrRefused) {
  Random random(Seed());
  for (int round = 0; round < Rounds(20'000); ++round) {
    std::string bytes(random.Below(60), ' ');
    for (char& c : bytes) c = RandomByte(random);
    ParseAnyHttp(bytes);
  }
}

TEST(HttpFuzzTest, SoAreMutationsOfMessages) {
  Random random(Seed());
  for (const std::string& bytes : Corpus()) ParseAnyHttp(bytes);
  for (int round = 0; round < Rounds(40'000); ++round) {
    std::string bytes = Corpus()[random.Below(Corpus().size())];
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const size_t at = random.Below(bytes.size() + 1);
      switch (random.Below(4)) {
        case 0:
          bytes.insert(at, 1, RandomByte(random));
          break;
        case 1:
          if (at < bytes.size()) bytes.erase(at, 1 + random.Below(3));
          break;
        case 2:
          if (at < bytes.size()) bytes[at] = RandomByte(random);
          break;
        default: {
          // A line or a piece of another one.
          const std::string& other = Corpus()[random.Below(Corpus().size())];
          const size_t from = random.Below(other.size());
          const size_t bytes_max = random.OneIn(2) ? other.find('\n', from) - from + 1 : 8;
          bytes.insert(at, other.substr(from, bytes_max));
        }
      }
    }
    ParseAnyHttp(bytes);
  }
}

TEST(HttpFuzzTest, SoAreLongTexts) {
  const int repetitions = Rounds(2000);
  for (const char* piece :
       {"\r", "\n", "\r\n", "a", ":", "a: b\r\n", " ", "0", "1\r\na\r\n", "/"}) {
    std::string text;
    for (int i = 0; i < repetitions; ++i) text += piece;
    ParseAnyHttp(text);
    ParseAnyHttp("GET /" + text + " HTTP/1.1\r\nHost: x\r\n\r\n");
    ParseAnyHttp("GET / HTTP/1.1\r\nHost: x\r\n" + text + "\r\n\r\n");
    ParseAnyHttp("GET / HTTP/1.1\r\nHost: x\r\nA: " + text + "\r\n\r\n");
    ParseAnyHttp("1;" + text + "\r\na\r\n0\r\n" + text + "\r\n");
    ParseAnyHttp("http://a" + text);
  }
}

}  // namespace
}  // namespace bobbin::test
