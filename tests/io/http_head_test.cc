// SPDX-License-Identifier: Apache-2.0
//
// Heads and chunks, byte by byte: what is one message, and what is refused.

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/io/http/fields.h>

#include "io/src/http/chunk_decoder.h"
#include "io/src/http/head.h"

namespace bobbin::io::http::internal {
namespace {

using testing::Optional;

// The head, without the empty line, in `lines`.
std::string Head(std::string_view lines) { return std::string(lines) + "\r\n\r\n"; }

Refusal Check(const std::string& bytes) {
  HeadScan scan;
  switch (scan.Scan(bytes)) {
    case HeadScan::State::kMalformed:
      return Refusal::kBadRequest;
    case HeadScan::State::kIncomplete:
      ADD_FAILURE() << "incomplete: " << bytes;
      return Refusal::kNone;
    case HeadScan::State::kComplete:
      break;
  }
  RequestHead head;
  return ParseRequestHead(std::string_view(bytes).substr(0, scan.bytes()), head);
}

TEST(HttpHeadTest, ARequestIsTakenApart) {
  const std::string bytes = Head(
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-LENGTH: 12\r\nAccept:  text/plain \r\n"
      "Expect: 100-continue");
  RequestHead head;
  ASSERT_EQ(ParseRequestHead(bytes, head), Refusal::kNone);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_TRUE(head.keeps_alive);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_FALSE(head.is_chunked);
  EXPECT_THAT(head.Find("accept"), Optional(std::string_view("text/plain")));
  EXPECT_EQ(head.fields.size(), 4U);
}

TEST(HttpHeadTest, VersionAndConnectionSayWhetherItIsKept) {
  const auto keeps = [](std::string_view version, std::string_view connection) {
    const std::string bytes =
        Head("GET / HTTP/" + std::string(version) + "\r\nHost: x" + std::string(connection));
    RequestHead head;
    EXPECT_EQ(ParseRequestHead(bytes, head), Refusal::kNone);
    return head.keeps_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "\r\nConnection: close"));
  EXPECT_FALSE(keeps("1.1", "\r\nConnection: x, Close"));
  EXPECT_FALSE(keeps("1.1", "\r\nConnection: close\r\nConnection: keep-alive"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "\r\nConnection: Keep-Alive"));
}

TEST(HttpHeadTest, AResponseIsTakenApart) {
  const std::string bytes = Head("HTTP/1.0 404 Not There\r\nTransfer: x");
  ResponseHead head;
  ASSERT_EQ(ParseResponseHead(bytes, head), Refusal::kNone);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.reason, "Not There");
  EXPECT_EQ(head.minor_version, 0);
  EXPECT_FALSE(head.keeps_alive);
}

TEST(HttpHeadTest, AResponseHasAStatusOfThreeDigitsFrom100On) {
  const auto refusal = [](std::string_view status) {
    ResponseHead head;
    return ParseResponseHead(Head("HTTP/1.1 " + std::string(status) + " x"), head);
  };
  for (const char* status : {"000", "001", "010", "099"}) {
    EXPECT_EQ(refusal(status), Refusal::kStatus) << status;
  }
  for (const char* status : {"100", "200", "599", "999"}) {
    EXPECT_EQ(refusal(status), Refusal::kNone) << status;
  }
  for (const char* status : {"", "2", "20", "2000", "-20", "+20", "2x0", " 200"}) {
    EXPECT_EQ(refusal(status), Refusal::kBadRequest) << status;
  }
}

struct Case {
  std::string_view what;
  std::string bytes;
  Refusal refusal;
};

std::vector<Case> Cases() {
  using enum Refusal;
  const std::string host = "\r\nHost: x";
  return {
      {"plain", Head("GET / HTTP/1.1" + host), kNone},
      {"no host", Head("GET / HTTP/1.1"), kBadRequest},
      {"no host, old", Head("GET / HTTP/1.0"), kNone},
      {"two hosts", Head("GET / HTTP/1.1" + host + host), kBadRequest},
      {"version 2", Head("GET / HTTP/2.0" + host), kVersion},
      {"version 1.2", Head("GET / HTTP/1.2" + host), kVersion},
      {"no version", Head("GET /" + host), kBadRequest},
      {"version that is none", Head("GET / HTTX/1.1" + host), kBadRequest},
      {"lower-case version", Head("GET / http/1.1" + host), kBadRequest},
      {"two spaces", Head("GET  / HTTP/1.1" + host), kBadRequest},
      {"space behind the version", Head("GET / HTTP/1.1 " + host), kBadRequest},
      {"tab for a space", Head("GET\t/ HTTP/1.1" + host), kBadRequest},
      {"method that is no token", Head("G(T / HTTP/1.1" + host), kBadRequest},
      {"control character in the target", Head("GET /\x01 HTTP/1.1" + host), kBadRequest},
      {"space before the colon", Head("GET / HTTP/1.1" + host + "\r\nA : b"), kBadRequest},
      {"tab before the colon", Head("GET / HTTP/1.1" + host + "\r\nA\t: b"), kBadRequest},
      {"no colon", Head("GET / HTTP/1.1" + host + "\r\nAb"), kBadRequest},
      {"no name", Head("GET / HTTP/1.1" + host + "\r\n: b"), kBadRequest},
      {"folded line", Head("GET / HTTP/1.1" + host + "\r\nA: b\r\n c"), kBadRequest},
      {"folded with a tab", Head("GET / HTTP/1.1" + host + "\r\nA: b\r\n\tc"), kBadRequest},
      {"blank first line of the fields", Head("GET / HTTP/1.1\r\n Host: x"), kBadRequest},
      {"bare LF", "GET / HTTP/1.1\nHost: x\n\n", kBadRequest},
      {"bare LF at a field", "GET / HTTP/1.1\r\nHost: x\n\r\n", kBadRequest},
      {"bare LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", kBadRequest},
      {"bare CR in a value", Head("GET / HTTP/1.1" + host + "\r\nA: b\rc"), kBadRequest},
      {"bare CR for a line end", Head("GET / HTTP/1.1\rHost: x"), kBadRequest},
      {"CR CR LF", Head("GET / HTTP/1.1" + host + "\r\nA: b\r"), kBadRequest},
      {"NUL in a value", Head("GET / HTTP/1.1" + host + "\r\nA: b" + std::string(1, '\0')),
       kBadRequest},
      {"control character in a value", Head("GET / HTTP/1.1" + host + "\r\nA: b\x0b"), kBadRequest},
      {"length", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 0"), kNone},
      {"no length in it", Head("POST / HTTP/1.1" + host + "\r\nContent-Length:"), kBadRequest},
      {"length with a sign", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: +1"),
       kBadRequest},
      {"negative length", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: -1"), kBadRequest},
      {"hexadecimal length", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 0x10"),
       kBadRequest},
      {"length with a blank in it", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 1 0"),
       kBadRequest},
      {"length beyond 64 bits",
       Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 18446744073709551616"), kBadRequest},
      {"two lengths", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 1\r\nContent-Length: 2"),
       kBadRequest},
      {"the same length twice",
       Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 1\r\nContent-Length: 1"), kBadRequest},
      {"a list of lengths", Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 1, 1"),
       kBadRequest},
      {"chunked", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: chunked"), kNone},
      {"Chunked", Head("POST / HTTP/1.1" + host + "\r\ntransfer-encoding: Chunked"), kNone},
      {"length, then chunked",
       Head("POST / HTTP/1.1" + host + "\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"),
       kBadRequest},
      {"chunked, then length",
       Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: chunked\r\nContent-Length: 1"),
       kBadRequest},
      {"chunked twice",
       Head("POST / HTTP/1.1" + host +
            "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
       kBadRequest},
      {"chunked twice in a list",
       Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: chunked, chunked"), kNotImplemented},
      {"gzip", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: gzip"), kNotImplemented},
      {"gzip, chunked", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: gzip, chunked"),
       kNotImplemented},
      {"chunked, gzip", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: chunked, gzip"),
       kNotImplemented},
      {"identity", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: identity"),
       kNotImplemented},
      {"xchunked", Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: xchunked"),
       kNotImplemented},
      {"chunked behind a vertical tab",
       Head("POST / HTTP/1.1" + host +
            "\r\nTransfer-Encoding: \x0b"
            "chunked"),
       kBadRequest},
      {"chunked in an old version", Head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked"),
       kBadRequest},
      {"an encoding with a blank name",
       Head("POST / HTTP/1.1" + host + "\r\nTransfer-Encoding : chunked"), kBadRequest},
  };
}

TEST(HttpHeadTest, WhatIsNotClearlyOneRequestIsRefused) {
  for (const Case& each : Cases()) {
    EXPECT_EQ(Check(each.bytes), each.refusal) << each.what << ":\n" << each.bytes;
  }
}

// However the bytes come, the head ends at the same place, or is refused.
TEST(HttpHeadTest, AScanFindsTheSameInPieces) {
  for (const Case& each : Cases()) {
    HeadScan whole;
    const HeadScan::State state = whole.Scan(each.bytes);
    for (size_t step = 1; step <= 3; ++step) {
      HeadScan scan;
      HeadScan::State found = HeadScan::State::kIncomplete;
      for (size_t have = 1; have < each.bytes.size() + step; have += step) {
        found = scan.Scan(std::string_view(each.bytes).substr(0, have));
        if (found != HeadScan::State::kIncomplete) break;
      }
      EXPECT_EQ(found, state) << each.what << ", " << step << " at a time";
      if (state == HeadScan::State::kComplete) {
        EXPECT_EQ(scan.bytes(), whole.bytes());
      }
    }
  }
}

// --- Chunks

struct Decoded {
  ChunkDecoder::State state;
  std::string body;
  size_t taken;
};

// In pieces of `step` bytes.
Decoded Decode(std::string_view bytes, size_t step) {
  ChunkDecoder decoder;
  std::string body;
  size_t taken = 0;
  while (taken < bytes.size()) {
    std::string_view piece = bytes.substr(taken, step);
    if (decoder.state() == ChunkDecoder::State::kBytes) {
      piece =
          piece.substr(0, static_cast<size_t>(std::min<uint64_t>(piece.size(), decoder.left())));
      body += piece;
      decoder.TakeBytes(piece.size());
      taken += piece.size();
    } else if (decoder.state() == ChunkDecoder::State::kFraming) {
      taken += decoder.TakeFraming(piece);
    } else {
      break;
    }
  }
  return {decoder.state(), body, taken};
}

TEST(HttpChunksTest, ABodyIsWhatItsChunksSay) {
  using State = ChunkDecoder::State;
  const struct {
    std::string_view bytes;
    State state;
    std::string_view body;
  } cases[] = {
      {"0\r\n\r\n", State::kDone, ""},
      {"3\r\nabc\r\n0\r\n\r\n", State::kDone, "abc"},
      {"3\r\nabc\r\n002\r\nde\r\n000\r\n\r\n", State::kDone, "abcde"},
      {"A;x=y; z=\"q\"\r\n0123456789\r\n0\r\n\r\n", State::kDone, "0123456789"},
      {"1\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", State::kDone, "a"},
      {"0000000000000001\r\na\r\n0\r\n\r\n", State::kDone, "a"},
      {"00000000000000001\r\na\r\n0\r\n\r\n", State::kMalformed, ""},
      {"10000000000000000\r\na", State::kMalformed, ""},
      {"3\r\nabcd\r\n0\r\n\r\n", State::kMalformed, "abc"},
      {"3\r\nab\r\n0\r\n\r\n", State::kMalformed, "ab\r"},
      {"3\nabc\r\n0\r\n\r\n", State::kMalformed, ""},
      {"3\r\nabc\n0\r\n\r\n", State::kMalformed, "abc"},
      {"3\r\rabc", State::kMalformed, ""},
      {" 3\r\nabc", State::kMalformed, ""},
      {"3 \r\nabc", State::kMalformed, ""},
      {"-3\r\nabc", State::kMalformed, ""},
      {"+3\r\nabc", State::kMalformed, ""},
      {"0x3\r\nabc", State::kMalformed, ""},
      {"\r\nabc", State::kMalformed, ""},
      {"g\r\nabc", State::kMalformed, ""},
      {"3;a\nb\r\nabc", State::kMalformed, ""},
      {"0\r\n\n", State::kMalformed, ""},
      {"0\r\nT: x\n\r\n", State::kMalformed, ""},
      {"0\r\n\rX", State::kMalformed, ""},
      {"3\r\nab", State::kBytes, "ab"},
      {"3\r\nabc\r\n", State::kFraming, "abc"},
  };
  for (const auto& each : cases) {
    for (size_t step = 1; step <= each.bytes.size(); ++step) {
      const Decoded decoded = Decode(each.bytes, step);
      EXPECT_EQ(decoded.state, each.state) << each.bytes << ", " << step << " at a time";
      EXPECT_EQ(decoded.body, each.body) << each.bytes << ", " << step << " at a time";
      if (each.state == State::kDone) {
        EXPECT_EQ(decoded.taken, each.bytes.size());
      }
    }
  }
}

TEST(HttpChunksTest, ExtensionsAndTrailersAreBounded) {
  const std::string much(10'000, 'x');
  EXPECT_EQ(Decode("1;" + much + "\r\n", 100).state, ChunkDecoder::State::kMalformed);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 1000; ++i) trailers += "Some: trailer\r\n";
  EXPECT_EQ(Decode(trailers + "\r\n", 100).state, ChunkDecoder::State::kMalformed);
}

// --- Fields

TEST(HttpFieldsTest, NamesAreTheSameInAnyCase) {
  Fields fields = {{"Accept", "a"}, {"accept", "b"}, {"Host", "h"}};
  EXPECT_THAT(fields.Find("ACCEPT"), Optional(std::string_view("a")));
  EXPECT_EQ(fields.Find("Other"), std::nullopt);
  fields.Add("Accept", "c");
  EXPECT_EQ(fields.size(), 4U);
  fields.Set("aCCept", "d");
  EXPECT_EQ(fields.size(), 2U);
  EXPECT_THAT(fields.Find("Accept"), Optional(std::string_view("d")));
  fields.Remove("HOST");
  EXPECT_EQ(fields.begin()->value, "d");
}

}  // namespace
}  // namespace bobbin::io::http::internal
