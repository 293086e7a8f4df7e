// SPDX-License-Identifier: Apache-2.0
//
// The one file that includes Boost.Beast, whose parser splits lines and checks characters. What
// that is lenient with is decided here.

#include "io/src/http/head.h"

#include <charconv>
#include <cstring>
#include <limits>

#include <boost/beast/http/basic_parser.hpp>

#include "io/src/http/ascii.h"

namespace bobbin::io::http::internal {

namespace {

namespace beast = boost::beast;
using Ignored = beast::error_code;

std::string_view ViewOf(beast::string_view text) { return {text.data(), text.size()}; }

// Digits and nothing else, within 64 bits.
std::optional<uint64_t> LengthOf(std::string_view text) {
  uint64_t length = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  const auto [parsed, error] = std::from_chars(text.data(), end, length);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return length;
}

// Beast takes any three digits, and whoever waits for a final response would take 099 for one that
// comes before it. Above 599 a status means as much as the server's 5xx do: it is the caller's.
constexpr int kStatusMin = 100;

// Takes what Beast finds in a head. It never sees a body.
template <bool kIsRequest, typename Head>
class Collector final : public beast::http::basic_parser<kIsRequest> {
 public:
  explicit Collector(Head& head) : head_(head) {}

  Refusal Parse(std::string_view bytes) {
    this->header_limit(static_cast<std::uint32_t>(bytes.size() + 1));
    // Bodies are not its business. (None at all would compare as less than every length.)
    this->body_limit(std::numeric_limits<std::uint64_t>::max());
    beast::error_code error;
    this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    if (refusal_ != Refusal::kNone) return refusal_;
    if (error == beast::http::error::bad_version) return Refusal::kVersion;
    if (error || !this->is_header_done()) return Refusal::kBadRequest;
    return Refusal::kNone;
  }

  int hosts() const { return hosts_; }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, Ignored&) override {
    if constexpr (kIsRequest) {
      head_.method = ViewOf(method);
      head_.target = ViewOf(target);
      head_.minor_version = version % 10;
      head_.keeps_alive = version > 10;
    }
  }
  void on_response_impl(int status, beast::string_view reason, int version,
                        Ignored& error) override {
    if constexpr (!kIsRequest) {
      if (status < kStatusMin) {
        refusal_ = Refusal::kStatus;
        error = beast::http::error::bad_status;
        return;
      }
      head_.status = status;
      head_.reason = ViewOf(reason);
      head_.minor_version = version % 10;
      head_.keeps_alive = version > 10;
    }
  }

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     Ignored& error) override {
    const FieldView view{ViewOf(name), ViewOf(value)};
    const Refusal refusal = Note(field, view.value);
    if (refusal != Refusal::kNone) {
      refusal_ = refusal;
      error = beast::http::error::bad_value;
      return;
    }
    head_.fields.push_back(view);
  }

  Refusal Note(beast::http::field field, std::string_view value) {
    switch (field) {
      case beast::http::field::content_length:
        // Also two that are the same: somebody has put two messages together.
        if (head_.content_length.has_value() || head_.is_chunked) return Refusal::kBadRequest;
        head_.content_length = LengthOf(value);
        return head_.content_length.has_value() ? Refusal::kNone : Refusal::kBadRequest;
      case beast::http::field::transfer_encoding:
        if (head_.content_length.has_value() || head_.is_chunked) return Refusal::kBadRequest;
        // An older version knows no chunks: whoever sends them so is not what it says.
        if (head_.minor_version == 0) return Refusal::kBadRequest;
        if (!IsSame(value, "chunked")) return Refusal::kNotImplemented;
        head_.is_chunked = true;
        return Refusal::kNone;
      case beast::http::field::connection:
        if (ListHas(value, "close")) is_closing_ = true;
        head_.keeps_alive = !is_closing_ && (head_.keeps_alive || ListHas(value, "keep-alive"));
        return Refusal::kNone;
      case beast::http::field::expect:
        if constexpr (kIsRequest) {
          if (IsSame(value, "100-continue")) head_.expects_continue = head_.minor_version > 0;
        }
        return Refusal::kNone;
      case beast::http::field::host:
        ++hosts_;
        return Refusal::kNone;
      default:
        return Refusal::kNone;
    }
  }

  // A head is all that it is given.
  void on_header_impl(Ignored&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Ignored&) override {}
  std::size_t on_body_impl(beast::string_view body, Ignored&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, Ignored&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, Ignored&) override {
    return body.size();
  }
  void on_finish_impl(Ignored&) override {}

  Head& head_;
  Refusal refusal_ = Refusal::kNone;
  int hosts_ = 0;
  bool is_closing_ = false;
};

void Clear(MessageHead& head) {
  head.minor_version = 1;
  head.fields.clear();
  head.content_length.reset();
  head.is_chunked = false;
  head.keeps_alive = true;
}

// Beast has one error for a version that is none and one that it does not know.
bool NamesAVersion(std::string_view line) {
  constexpr std::string_view kName = " HTTP/";
  const size_t at = line.rfind(kName);
  if (at == line.npos) return false;
  const std::string_view rest = line.substr(at + kName.size());
  return rest.size() == 3 && IsDigit(rest[0]) && rest[1] == '.' && IsDigit(rest[2]);
}

std::string_view FirstLine(std::string_view bytes) { return bytes.substr(0, bytes.find('\r')); }

}  // namespace

HeadScan::State HeadScan::Scan(std::string_view bytes) {
  // The end of the last line, and whether the next one goes on with it, need two bytes more.
  while (true) {
    const std::string_view rest = bytes.substr(line_);
    const void* const found = std::memchr(rest.data(), '\n', rest.size());
    const size_t feed = found == nullptr
                            ? rest.size()
                            : static_cast<size_t>(static_cast<const char*>(found) - rest.data());
    const void* const cr = std::memchr(rest.data(), '\r', feed);
    if (found == nullptr) {
      // A CR may be the last byte so far.
      const bool is_bare =
          cr != nullptr && static_cast<const char*>(cr) + 1 != bytes.data() + bytes.size();
      return is_bare ? State::kMalformed : State::kIncomplete;
    }
    if (cr == nullptr || static_cast<const char*>(cr) + 1 != found) return State::kMalformed;
    if (first_line_ != 0 && (rest.front() == ' ' || rest.front() == '\t')) {
      return State::kMalformed;
    }
    line_ += feed + 1;
    if (feed == 1) return first_line_ == 0 ? State::kMalformed : State::kComplete;
    if (first_line_ == 0) first_line_ = line_;
  }
}

std::optional<std::string_view> MessageHead::Find(std::string_view name) const {
  for (const FieldView& field : fields) {
    if (IsSame(field.name, name)) return field.value;
  }
  return std::nullopt;
}

Refusal ParseRequestHead(std::string_view bytes, RequestHead& head) {
  Clear(head);
  head.expects_continue = false;
  Collector<true, RequestHead> collector(head);
  Refusal refusal = collector.Parse(bytes);
  if (refusal == Refusal::kVersion && !NamesAVersion(FirstLine(bytes))) {
    refusal = Refusal::kBadRequest;
  }
  if (refusal != Refusal::kNone) return refusal;
  // Exactly one says for whom it is; before HTTP/1.1 there need not be any.
  if (collector.hosts() > 1 || (collector.hosts() == 0 && head.minor_version > 0)) {
    return Refusal::kBadRequest;
  }
  return Refusal::kNone;
}

Refusal ParseResponseHead(std::string_view bytes, ResponseHead& head) {
  Clear(head);
  Collector<false, ResponseHead> collector(head);
  return collector.Parse(bytes);
}

bool IsKnownMethod(std::string_view method) {
  const beast::string_view text(method.data(), method.size());
  return beast::http::string_to_verb(text) != beast::http::verb::unknown;
}

}  // namespace bobbin::io::http::internal
