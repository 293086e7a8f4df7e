// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/client_exchange.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>

#include "io/src/http/ascii.h"
#include "io/src/http/output.h"
#include "io/src/http/spans.h"

namespace bobbin::io::http::internal {

namespace {

using Framing = BodyOutput::Framing;

// Responses such as `100 Continue` before the one that is meant. Not tuned.
constexpr int kInterimMax = 16;

// Of the body of a redirect: beyond it a new connection is cheaper. Not tuned.
constexpr uint64_t kPassedMax = 16'384;

// Methods whose requests say that they have no body, if they have none.
bool NamesLength(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

ClientExchange::~ClientExchange() {
  ClientConnection* const connection = lease_.connection.get();
  if (connection == nullptr || !is_reusable_ || !connection->body.is_done()) return;
  connection->input.Unpin();
  // What has come beyond the response belongs to nobody.
  if (connection->input.empty()) lease_.Keep();
}

absl::Status ClientExchange::Run(ClientRequest& request, const Url& url) {
  ClientConnection& connection = *lease_.connection;
  const bool is_stream = static_cast<bool>(request.stream);
  const uint64_t bytes = is_stream ? request.stream_bytes.value_or(0) : request.body.size();
  Framing framing = Framing::kNone;
  if (is_stream) {
    framing = request.stream_bytes.has_value() ? Framing::kLength : Framing::kChunked;
  } else if (bytes > 0 || NamesLength(request.method)) {
    framing = Framing::kLength;
  }
  AppendHead(request, url, framing, bytes);

  bool is_wanted = true;
  if (request.expects_continue && framing != Framing::kNone) {
    BOBBIN_ASSIGN_OR_RETURN(is_wanted, AwaitContinue());
  }
  absl::Status sent;
  if (is_wanted) sent = SendBody(request, framing, bytes);
  if (sent.ok()) sent = connection.output.Flush();
  // A server may answer, and close, before it has read all: the answer is what counts.
  if (!sent.ok() && !absl::IsUnavailable(sent)) return sent;
  if (is_wanted) {
    const absl::Status received = ReceiveFinalHead();
    if (!received.ok()) return sent.ok() ? received : sent;
  }
  BOBBIN_RETURN_IF_ERROR(BeginBody(request.method));
  if (!is_wanted || !sent.ok()) is_reusable_ = false;
  return absl::OkStatus();
}

void ClientExchange::AppendHead(const ClientRequest& request, const Url& url, Framing framing,
                                uint64_t bytes) {
  std::string& text = lease_.connection->output.gathered();
  text.append(request.method).append(" ").append(url.target).append(" HTTP/1.1\r\n");
  AppendField("Host", url.authority, text);
  for (const Field& field : request.fields) AppendField(field.name, field.value, text);
  AppendTrace(request.fields, text);
  if (framing == Framing::kLength) {
    AppendField("Content-Length", std::to_string(bytes), text);
  } else if (framing == Framing::kChunked) {
    AppendField("Transfer-Encoding", "chunked", text);
  }
  if (request.expects_continue && framing != Framing::kNone) {
    AppendField("Expect", "100-continue", text);
  }
  text.append("\r\n");
}

absl::Status ClientExchange::SendBody(ClientRequest& request, Framing framing, uint64_t bytes) {
  Output& output = lease_.connection->output;
  if (!request.stream) return output.Append(request.body);
  BodyOutput body(output, framing, bytes);
  BOBBIN_RETURN_IF_ERROR(request.stream(body));
  return body.Finish();
}

absl::StatusOr<bool> ClientExchange::AwaitContinue() {
  ClientConnection& connection = *lease_.connection;
  BOBBIN_RETURN_IF_ERROR(connection.output.Flush());
  absl::Status received;
  {
    const DeadlineScope scope(lease_.options().continue_duration);
    received = ReceiveHead();
  }
  if (absl::IsDeadlineExceeded(received)) {
    // A server that knows nothing of it waits for the body.
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    return true;
  }
  BOBBIN_RETURN_IF_ERROR(received);
  if (connection.head.status >= 200) return false;
  connection.input.Unpin();
  return true;
}

absl::Status ClientExchange::ReceiveFinalHead() {
  for (int i = 0; i < kInterimMax; ++i) {
    BOBBIN_RETURN_IF_ERROR(ReceiveHead());
    if (lease_.connection->head.status >= 200) return absl::OkStatus();
    lease_.connection->input.Unpin();
  }
  return MakeStatus(absl::StatusCode::kInternal, "http response: interim ones without end");
}

absl::Status ClientExchange::ReceiveHead() {
  ClientConnection& connection = *lease_.connection;
  InputBuffer& input = connection.input;
  HeadScan scan;
  const auto failed = [](absl::StatusCode code, std::string_view why) {
    return MakeStatus(code, fmt::format("http response: {}", why));
  };
  while (true) {
    const HeadScan::State state =
        input.empty() ? HeadScan::State::kIncomplete : scan.Scan(input.unused());
    if (state == HeadScan::State::kMalformed) {
      return failed(absl::StatusCode::kInternal, "malformed header");
    }
    const bool is_complete = state == HeadScan::State::kComplete;
    const size_t bytes = is_complete ? scan.bytes() : input.unused().size();
    if (bytes > lease_.options().header_bytes_max) {
      return failed(absl::StatusCode::kResourceExhausted, "its header is too large");
    }
    if (is_complete) break;
    BOBBIN_ASSIGN_OR_RETURN(const size_t received, connection.transport->Read(input.Room()));
    if (received == 0) {
      return failed(absl::StatusCode::kUnavailable, "the server has closed the connection");
    }
    has_answer_ = true;
    input.Received(received);
  }
  // A chunked body is received behind the head, which must not move any more.
  input.Reserve(scan.bytes() + BodyReader::kRoom);
  switch (ParseResponseHead(input.unused().substr(0, scan.bytes()), connection.head)) {
    case Refusal::kNone:
      break;
    case Refusal::kStatus:
      return failed(absl::StatusCode::kInternal, "a status below 100");
    default:
      return failed(absl::StatusCode::kInternal, "malformed header");
  }
  input.Pin(scan.bytes());
  return absl::OkStatus();
}

absl::Status ClientExchange::BeginBody(std::string_view method) {
  ClientConnection& connection = *lease_.connection;
  const ResponseHead& head = connection.head;
  using Kind = BodyReader::Kind;
  Kind kind = Kind::kToEnd;
  if (method == "HEAD" || head.status == 204 || head.status == 304) {
    kind = Kind::kNone;
  } else if (head.is_chunked) {
    kind = Kind::kChunked;
  } else if (head.content_length.has_value()) {
    kind = Kind::kLength;
  }
  const uint64_t length = head.content_length.value_or(0);
  const uint64_t bytes_max = lease_.options().body_bytes_max;
  if (kind == Kind::kLength && length > bytes_max) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, "http response: its body is too large");
  }
  is_reusable_ = head.keeps_alive && kind != Kind::kToEnd;
  connection.body.Begin(kind, length, bytes_max);
  return absl::OkStatus();
}

void ClientExchange::PassBody() {
  if (!lease_.connection->body.Discard(kPassedMax)) is_reusable_ = false;
}

absl::StatusOr<size_t> ClientExchange::ReadBody(std::span<std::byte> buffer) {
  ClientConnection& connection = *lease_.connection;
  if (connection.body.is_done() || buffer.empty()) return size_t{0};
  absl::StatusOr<size_t> read = connection.body.Read(buffer);
  if (!read.ok()) is_reusable_ = false;
  if (read.status().code() == absl::StatusCode::kInvalidArgument) {
    return MakeStatus(absl::StatusCode::kInternal, MessageOf(read.status()));
  }
  return read;
}

}  // namespace bobbin::io::http::internal
