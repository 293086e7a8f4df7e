// SPDX-License-Identifier: Apache-2.0
//
// What takes HTTP apart under a fuzzer: in whatever pieces bytes come they mean the same, and what
// was understood means the same once it is written again.
//
// With Clang's libFuzzer it is a program of its own (io_http_fuzz); http_fuzz_test.cc calls it with
// random bytes and with mutations of messages.

#include "tests/io/http_fuzz.h"

#include <algorithm>
#include <optional>
#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

#include "io/src/http/ascii.h"
#include "io/src/http/chunk_decoder.h"
#include "io/src/http/head.h"
#include "io/src/http/url.h"

namespace bobbin::test {

namespace {

using io::http::internal::ChunkDecoder;
using io::http::internal::HeadScan;
using io::http::internal::IsFieldValue;
using io::http::internal::IsSame;
using io::http::internal::IsToken;
using io::http::internal::MessageHead;
using io::http::internal::Refusal;
using io::http::internal::RequestHead;
using io::http::internal::ResponseHead;
using io::http::internal::Url;

// How long the head is; nothing if it is not complete, or is none.
std::optional<size_t> ScanAny(std::string_view bytes) {
  HeadScan whole;
  const HeadScan::State state = whole.Scan(bytes);
  HeadScan pieces;
  HeadScan::State last = HeadScan::State::kIncomplete;
  size_t have = 0;
  while (last == HeadScan::State::kIncomplete && have < bytes.size()) {
    last = pieces.Scan(bytes.substr(0, ++have));
  }
  BOBBIN_CHECK(last == state, "in pieces it is the same");
  if (state != HeadScan::State::kComplete) return std::nullopt;
  BOBBIN_CHECK(whole.bytes() == have && pieces.bytes() == have, "and ends at the same byte");
  BOBBIN_CHECK(bytes.substr(0, have).ends_with("\r\n\r\n"), "which ends an empty line");
  BOBBIN_CHECK(whole.first_line_bytes(bytes) == bytes.find('\n') + 1, "behind the first one");
  return have;
}

void CheckFields(const MessageHead& head) {
  size_t lengths = 0;
  size_t encodings = 0;
  for (const auto& field : head.fields) {
    BOBBIN_CHECK(IsToken(field.name), "a field has a name");
    BOBBIN_CHECK(IsFieldValue(field.value), "and a value on one line");
    if (IsSame(field.name, "Content-Length")) ++lengths;
    if (IsSame(field.name, "Transfer-Encoding")) ++encodings;
  }
  BOBBIN_CHECK(lengths + encodings <= 1, "a body has one length");
  BOBBIN_CHECK(head.content_length.has_value() == (lengths == 1), "as it says");
  BOBBIN_CHECK(head.is_chunked == (encodings == 1), "or its chunks do");
}

void AppendFields(const MessageHead& head, std::string& text) {
  for (const auto& field : head.fields) {
    text.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  text.append("\r\n");
}

void CheckSame(const MessageHead& head, const MessageHead& again) {
  BOBBIN_CHECK(again.minor_version == head.minor_version &&
                   again.content_length == head.content_length &&
                   again.is_chunked == head.is_chunked && again.keeps_alive == head.keeps_alive,
               "what is written again means the same");
  BOBBIN_CHECK(
      std::equal(
          head.fields.begin(), head.fields.end(), again.fields.begin(), again.fields.end(),
          [](const auto& a, const auto& b) { return a.name == b.name && a.value == b.value; }),
      "and so do its fields");
}

void ParseAnyRequest(std::string_view bytes) {
  RequestHead head;
  if (ParseRequestHead(bytes, head) != Refusal::kNone) return;
  BOBBIN_CHECK(IsToken(head.method), "a method is a name");
  BOBBIN_CHECK(
      !head.target.empty() &&
          std::all_of(head.target.begin(), head.target.end(),
                      [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; }),
      "a target is one word");
  CheckFields(head);
  const auto is_host = [](const auto& field) { return IsSame(field.name, "Host"); };
  const auto hosts = std::count_if(head.fields.begin(), head.fields.end(), is_host);
  BOBBIN_CHECK(hosts == 1 || (hosts == 0 && head.minor_version == 0), "it is for one host");

  std::string text(head.method);
  text.append(" ").append(head.target).append(" HTTP/1.");
  text.append(head.minor_version == 0 ? "0" : "1").append("\r\n");
  AppendFields(head, text);
  BOBBIN_CHECK(ScanAny(text) == text.size(), "what was one request is one");
  RequestHead again;
  BOBBIN_CHECK(ParseRequestHead(text, again) == Refusal::kNone, "and is understood");
  BOBBIN_CHECK(again.method == head.method && again.target == head.target &&
                   again.expects_continue == head.expects_continue,
               "as the same");
  CheckSame(head, again);
}

void ParseAnyResponse(std::string_view bytes) {
  ResponseHead head;
  if (ParseResponseHead(bytes, head) != Refusal::kNone) return;
  BOBBIN_CHECK(head.status >= 100 && head.status <= 999, "a status has three digits");
  CheckFields(head);
  std::string text = "HTTP/1." + std::to_string(head.minor_version) + " " +
                     std::to_string(head.status) + " " + std::string(head.reason) + "\r\n";
  AppendFields(head, text);
  BOBBIN_CHECK(ScanAny(text) == text.size(), "what was one response is one");
  ResponseHead again;
  BOBBIN_CHECK(ParseResponseHead(text, again) == Refusal::kNone, "and is understood");
  BOBBIN_CHECK(again.status == head.status && again.reason == head.reason, "as the same");
  CheckSame(head, again);
}

struct Decoded {
  ChunkDecoder::State state = ChunkDecoder::State::kFraming;
  size_t used = 0;
  std::string body;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

// Of `bytes`, given so many at a time.
Decoded Decode(std::string_view bytes, size_t piece_bytes) {
  ChunkDecoder decoder;
  Decoded all;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + piece_bytes, bytes.size());
    while (all.used < end) {
      const std::string_view piece = bytes.substr(all.used, end - all.used);
      if (decoder.state() == ChunkDecoder::State::kFraming) {
        all.used += decoder.TakeFraming(piece);
      } else if (decoder.state() == ChunkDecoder::State::kBytes) {
        BOBBIN_CHECK(decoder.left() > 0, "a chunk is not empty");
        const size_t taken = std::min<uint64_t>(decoder.left(), piece.size());
        all.body += piece.substr(0, taken);
        all.used += taken;
        decoder.TakeBytes(taken);
      } else {
        break;
      }
    }
  }
  all.state = decoder.state();
  return all;
}

void DecodeAnyChunks(std::string_view bytes) {
  const Decoded whole = Decode(bytes, bytes.size() + 1);
  for (const size_t piece_bytes : {size_t{1}, size_t{2}, size_t{7}}) {
    BOBBIN_CHECK(Decode(bytes, piece_bytes) == whole, "in pieces it is the same body");
  }
  if (whole.state != ChunkDecoder::State::kDone) return;
  BOBBIN_CHECK(bytes.substr(0, whole.used).ends_with("\r\n"), "it ends with a line");
  BOBBIN_CHECK(Decode(bytes.substr(0, whole.used), 1) == whole, "and needs nothing behind it");
}

void ParseAnyUrl(std::string_view text) {
  static const Url base = *Url::Parse("http://example.org:81/a/b?c");
  const auto resolved = base.Resolve(text);
  for (const auto& url : {Url::Parse(text), resolved}) {
    if (!url.ok()) continue;
    BOBBIN_CHECK(!url->host.empty() && url->port != 0, "it leads somewhere");
    BOBBIN_CHECK(url->target.starts_with('/'), "to a path");
    for (const std::string& part : {url->authority, url->target}) {
      BOBBIN_CHECK(
          std::all_of(part.begin(), part.end(), [](char c) { return c > ' ' && c < 0x7f; }),
          "that cannot end a line");
    }
    const auto again = Url::Parse(url->ToString());
    BOBBIN_CHECK(again.ok() && again->HasSameOrigin(*url) && again->target == url->target,
                 "what is printed means the same");
  }
}

}  // namespace

void ParseAnyHttp(std::string_view bytes) {
  if (const std::optional<size_t> head_bytes = ScanAny(bytes)) {
    ParseAnyRequest(bytes.substr(0, *head_bytes));
    ParseAnyResponse(bytes.substr(0, *head_bytes));
  }
  DecodeAnyChunks(bytes);
  ParseAnyUrl(bytes);
}

}  // namespace bobbin::test

#if defined(BOBBIN_LIBFUZZER)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bobbin::test::ParseAnyHttp({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
