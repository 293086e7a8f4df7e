// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/http/client.h>

#include "io/src/http/ascii.h"
#include "io/src/http/client_exchange.h"
#include "io/src/http/client_pool.h"
#include "io/src/http/read_all.h"
#include "io/src/http/spans.h"
#include "io/src/http/url.h"

namespace bobbin::io::http {

using internal::ClientExchange;
using internal::ClientPool;
using internal::IsSame;
using internal::Url;

namespace {

// Whether doing it twice is doing it once.
bool IsIdempotent(std::string_view method) {
  constexpr std::array<std::string_view, 6> kMethods = {"GET",    "HEAD",    "PUT",
                                                        "DELETE", "OPTIONS", "TRACE"};
  return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

absl::Status Check(const ClientRequest& request) {
  const auto bad = [](std::string_view why) {
    return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("http request: {}", why));
  };
  if (!internal::IsToken(request.method)) return bad("the method is none");
  for (const Field& field : request.fields) {
    if (!internal::IsToken(field.name)) return bad("a field's name is none");
    if (!internal::IsFieldValue(field.value)) {
      return bad("a field's value has a control character");
    }
    for (const std::string_view own : {"Host", "Content-Length", "Transfer-Encoding", "Expect"}) {
      if (IsSame(field.name, own)) return bad("a field that the client writes itself");
    }
  }
  return absl::OkStatus();
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Makes `request` the one that a redirect of that status asks for.
void Redirect(int status, const Url& from, const Url& to, ClientRequest& request) {
  const bool becomes_get =
      status == 303 || ((status == 301 || status == 302) && request.method == "POST");
  if (becomes_get) {
    if (request.method != "HEAD") request.method = "GET";
    request.body.clear();
    request.stream = {};
    request.stream_bytes.reset();
    request.expects_continue = false;
    request.fields.Remove("Content-Type");
  }
  if (!from.HasSameOrigin(to)) {
    // Secrets of one origin are not for another.
    for (const std::string_view name : {"Authorization", "Cookie", "Proxy-Authorization"}) {
      request.fields.Remove(name);
    }
  }
}

// Sends it once, or twice if a kept connection was at its end.
absl::StatusOr<std::unique_ptr<ClientExchange>> Exchange(ClientPool& pool, const Url& url,
                                                         ClientRequest& request) {
  BOBBIN_ASSIGN_OR_RETURN(ClientPool::Lease lease, pool.Acquire(url));
  const bool is_new = lease.connection == nullptr;
  if (is_new) BOBBIN_RETURN_IF_ERROR(pool.Connect(url, lease));
  const bool may_repeat = !is_new && IsIdempotent(request.method) && !request.stream;
  auto exchange = std::make_unique<ClientExchange>(std::move(lease));
  absl::Status done = exchange->Run(request, url);
  if (absl::IsUnavailable(done) && may_repeat && !exchange->has_answer()) {
    pool.CountRepeated();
    BOBBIN_RETURN_IF_ERROR(pool.Connect(url, exchange->lease()));
    done = exchange->Run(request, url);
  }
  if (!done.ok()) return done;
  return exchange;
}

// The same in a span; `resends`: how many came before it.
absl::StatusOr<std::unique_ptr<ClientExchange>> ExchangeInSpan(ClientPool& pool, const Url& url,
                                                               ClientRequest& request,
                                                               int resends) {
  if (__builtin_expect(!Span::MayBeKept(), 1)) return Exchange(pool, url, request);
  internal::ClientSpan span(request.method, url, resends);
  absl::StatusOr<std::unique_ptr<ClientExchange>> exchange = Exchange(pool, url, request);
  if (exchange.ok()) {
    span.End((*exchange)->head().status);
  } else {
    span.End(exchange.status());
  }
  return exchange;
}

}  // namespace

// --- ClientResponse

ClientResponse::ClientResponse(std::unique_ptr<ClientExchange> exchange)
    : exchange_(std::move(exchange)) {}
ClientResponse::ClientResponse(ClientResponse&&) noexcept = default;
ClientResponse& ClientResponse::operator=(ClientResponse&&) noexcept = default;
ClientResponse::~ClientResponse() = default;

int ClientResponse::status() const { return exchange_->head().status; }
std::span<const FieldView> ClientResponse::fields() const { return exchange_->head().fields; }

std::optional<std::string_view> ClientResponse::Find(std::string_view name) const {
  return exchange_->head().Find(name);
}

std::optional<uint64_t> ClientResponse::content_length() const {
  return exchange_->head().content_length;
}

absl::StatusOr<size_t> ClientResponse::ReadBody(std::span<std::byte> buffer) {
  return exchange_->ReadBody(buffer);
}

absl::StatusOr<std::string> ClientResponse::ReadAll() { return internal::ReadAll(*this); }

// --- Client

Client::Client(ClientOptions options) : pool_(std::make_shared<ClientPool>(options)) {}

Client::~Client() { pool_->Close(); }

absl::StatusOr<ClientResponse> Client::Send(ClientRequest request) {
  BOBBIN_RETURN_IF_ERROR(Check(request));
  BOBBIN_ASSIGN_OR_RETURN(Url url, Url::Parse(request.url));
  for (int redirects = 0;; ++redirects) {
    BOBBIN_ASSIGN_OR_RETURN(auto exchange, ExchangeInSpan(*pool_, url, request, redirects));
    ClientResponse response(std::move(exchange));
    const std::optional<std::string_view> location = response.Find("Location");
    const int status = response.status();
    if (request.redirects_max == 0 || !IsRedirect(status) || !location.has_value()) {
      return response;
    }
    // What was streamed is gone.
    if (request.stream && status != 303) return response;
    BOBBIN_ASSIGN_OR_RETURN(Url next, url.Resolve(*location));
    response.exchange_->PassBody();
    if (redirects == request.redirects_max) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        fmt::format("http request: more than {} redirects", redirects));
    }
    Redirect(status, url, next, request);
    url = std::move(next);
  }
}

absl::StatusOr<ClientResponse> Client::Get(std::string_view url) {
  return Send({.url = std::string(url)});
}

ClientStatistics Client::Statistics() const { return pool_->Statistics(); }

}  // namespace bobbin::io::http
