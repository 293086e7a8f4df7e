// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/server_session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>

#include "io/src/http/ascii.h"
#include "io/src/http/spans.h"
#include "io/src/unused_stack.h"

namespace bobbin::io::http::internal {

namespace {

// Of a body that the handler has not read: how much is thrown away to keep the connection. And
// after the last answer: how much, and for how long, so that the peer gets that. Not tuned.
constexpr uint64_t kDiscardBytesMax = uint64_t{256} << 10;
constexpr std::chrono::seconds kLingerDuration{1};
// How long a connection that was asked to stop may take for its last answer, and again for its
// lingering: little beside DrainOptions::cancel_grace. Not tuned.
constexpr std::chrono::milliseconds kLastDuration{100};

// Without a request: after that a connection gives back what is not needed to wait for one. Its
// buffers it has given back before. Not tuned.
constexpr std::chrono::milliseconds kRestAfter{200};

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The status that tells a peer of an error.
int StatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string Describe(std::exception_ptr exception) {
  return bobbin::internal::Outcome{.status = {}, .exception = std::move(exception)}.Describe();
}

bool HasNoBody(int status) { return status == 204 || status == 304; }

Response PlainAnswer(int status) {
  Response response{.status = status, .fields = {{"Content-Type", "text/plain"}}};
  if (!HasNoBody(status)) response.body = fmt::format("{}\n", StatusText(status));
  return response;
}

// What is wrong with it; empty if nothing is.
std::string_view Mistake(const Response& response) {
  if (response.status < 200 || response.status > 599) return "a status that is none";
  for (const Field& field : response.fields) {
    if (!IsToken(field.name)) return "a field's name that is none";
    if (!IsFieldValue(field.value)) return "a field's value with a control character";
    if (IsSame(field.name, "Content-Length") || IsSame(field.name, "Transfer-Encoding")) {
      return "a field that the server writes itself";
    }
  }
  return {};
}

}  // namespace

ServerSession::ServerSession(const ServerOptions& options, const Handler& handler,
                             ServerCounters::Place& counters, ServerConnection& connection,
                             Transport& transport)
    : options_(options),
      handler_(handler),
      counters_(counters),
      connection_(connection),
      transport_(transport),
      output_(transport, options.write_duration),
      stand_in_(output_),
      body_(input_, transport) {}

absl::Status ServerSession::Serve() {
  while (keeps_alive_) {
    switch (AwaitHead()) {
      case Next::kRequest:
        if (absl::Status answered = Answer(); !answered.ok()) {
          Flush().IgnoreError();  // With it, answers that came before.
          return answered;
        }
        break;
      case Next::kRefusal:
        return AnswerRefusal();
      case Next::kEnd:
        return end_;
    }
  }
  BOBBIN_RETURN_IF_ERROR(Flush());
  // Something may have come that nobody has looked at.
  if (!body_.is_done() || !input_.empty() || !transport_.IsQuiet()) Linger();
  return absl::OkStatus();
}

// --- Before the handler

ServerSession::Next ServerSession::AwaitHead() {
  HeadScan scan;
  Deadline deadline = Deadline::Never();
  // Some clients send an empty line after a body.
  for (int lines = 0; lines < 2;) {
    if (input_.empty()) {
      if (const Next next = AwaitFirstByte(); next != Next::kRequest) return next;
    }
    const std::string_view unused = input_.unused();
    if (unused.front() != '\r') break;
    if (unused.starts_with("\r\n")) {
      input_.Use(2);
      ++lines;
    } else if (unused.size() > 1) {
      break;
    } else {
      if (deadline.is_never()) deadline = Deadline::After(options_.header_duration);
      if (const Next next = ReceiveMore(deadline); next != Next::kRequest) return next;
    }
  }
  while (true) {
    if (input_.empty()) {
      if (const Next next = AwaitFirstByte(); next != Next::kRequest) return next;
    }
    const std::string_view unused = input_.unused();
    const HeadScan::State state = scan.Scan(unused);
    if (state == HeadScan::State::kMalformed) return Refuse(Refusal::kBadRequest);
    if (scan.first_line_bytes(unused) > options_.request_line_bytes_max) {
      return Refuse(Refusal::kTargetTooLong);
    }
    const bool is_complete = state == HeadScan::State::kComplete;
    if ((is_complete ? scan.bytes() : unused.size()) > options_.header_bytes_max) {
      return Refuse(Refusal::kHeaderTooLarge);
    }
    if (is_complete) break;
    if (deadline.is_never()) deadline = Deadline::After(options_.header_duration);
    if (const Next next = ReceiveMore(deadline); next != Next::kRequest) return next;
  }

  const auto parse = [&] {
    return ParseRequestHead(input_.unused().substr(0, scan.bytes()), head_);
  };
  Refusal refusal = parse();
  if (refusal == Refusal::kNone && head_.is_chunked) {
    // Chunks are received behind the head, which must not move any more.
    input_.Reserve(scan.bytes() + BodyReader::kRoom);
    refusal = parse();
  }
  if (refusal != Refusal::kNone) return Refuse(refusal);
  input_.Pin(scan.bytes());
  return TakeHead();
}

ServerSession::Next ServerSession::AwaitFirstByte() {
  end_ = Flush();
  if (!end_.ok()) return Next::kEnd;
  input_.Release();
  connection_.MarkIdle();
  absl::StatusOr<PooledBytes> received = ReadFirstBytes();
  connection_.MarkBusy();
  if (received.ok() && !received->empty()) {
    input_.Adopt(*std::move(received));
    return Next::kRequest;
  }
  end_ = absl::IsDeadlineExceeded(received.status()) ? absl::OkStatus() : received.status();
  return Next::kEnd;
}

absl::StatusOr<PooledBytes> ServerSession::ReadFirstBytes() {
  // What is there below is made anew by a request, so at first it stays.
  const bool may_rest = options_.idle_duration > kRestAfter;
  {
    const DeadlineScope scope(may_rest ? kRestAfter : options_.idle_duration);
    absl::StatusOr<PooledBytes> received = transport_.ReadPooled();
    if (!may_rest || !absl::IsDeadlineExceeded(received.status())) return received;
  }
  Rest();
  const DeadlineScope scope(options_.idle_duration - kRestAfter);
  return transport_.ReadPooled();
}

void ServerSession::Rest() {
  output_.Release();
  head_ = RequestHead();
  io::internal::ReleaseUnusedStack();
}

ServerSession::Next ServerSession::ReceiveMore(Deadline deadline) {
  end_ = Flush();
  if (!end_.ok()) return Next::kEnd;
  const DeadlineScope scope(deadline);
  const absl::StatusOr<size_t> received = transport_.Read(input_.Room());
  if (received.ok() && *received > 0) {
    input_.Received(*received);
    return Next::kRequest;
  }
  if (absl::IsDeadlineExceeded(received.status())) return Refuse(Refusal::kDeadline);
  end_ = received.status();
  return Next::kEnd;
}

ServerSession::Next ServerSession::Refuse(Refusal refusal) {
  refusal_ = refusal;
  return Next::kRefusal;
}

ServerSession::Next ServerSession::TakeHead() {
  keeps_alive_ = head_.keeps_alive;
  if (head_.is_chunked) {
    body_.Begin(BodyReader::Kind::kChunked, 0, options_.body_bytes_max);
  } else {
    const uint64_t length = head_.content_length.value_or(0);
    if (length > options_.body_bytes_max) return Refuse(Refusal::kBodyTooLarge);
    body_.Begin(BodyReader::Kind::kLength, length, options_.body_bytes_max);
  }
  owes_continue_ = head_.expects_continue && !body_.is_done();
  return Next::kRequest;
}

absl::StatusOr<size_t> ServerSession::ReadBody(std::span<std::byte> buffer) {
  if (body_.is_done() || buffer.empty()) return size_t{0};
  stand_in_.Return();
  if (std::exchange(owes_continue_, false)) output_.gathered().append(kContinue);
  BOBBIN_RETURN_IF_ERROR(output_.Flush());
  const DeadlineScope scope(body_deadline_);
  absl::StatusOr<size_t> read = body_.Read(buffer);
  if (read.ok()) return read;
  keeps_alive_ = false;
  switch (read.status().code()) {
    case absl::StatusCode::kInvalidArgument:
      refusal_ = Refusal::kBadRequest;
      break;
    case absl::StatusCode::kResourceExhausted:
      refusal_ = Refusal::kBodyTooLarge;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      refusal_ = Refusal::kDeadline;
      break;
    default:
      break;
  }
  return read;
}

// --- The handler, and its answer

absl::Status ServerSession::Answer() {
  // relaxed: counted for people.
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  if (!body_.is_done()) body_deadline_ = Deadline::After(options_.body_duration);
  route_ = {};
  Request request(*this);
  BOBBIN_RETURN_IF_ERROR(__builtin_expect(ServerSpan::IsWanted(head_), 0) ? AnswerInSpan(request)
                                                                          : AnswerRequest(request));
  if (keeps_alive_ && !AfterBody()) keeps_alive_ = false;
  input_.Unpin();
  return absl::OkStatus();
}

absl::Status ServerSession::AnswerInSpan(Request& request) {
  const bool is_kept = Span::MayBeKept();
  ServerSpan span(head_, options_.tls ? "https" : "http", request.path(),
                  is_kept ? peer_address() : absl::StatusOr<SocketAddress>(SocketAddress()));
  const absl::Status answered = AnswerRequest(request);
  span.End(head_.method, route_, status_, answered);
  return answered;
}

absl::Status ServerSession::AnswerRequest(Request& request) {
  absl::StatusOr<Response> result;
  stand_in_.Leave();
  const std::exception_ptr exception =
      bobbin::internal::CaptureException([&] { result = handler_(request); });
  stand_in_.Return();
  if (exception != nullptr) {
    counters_.exceptions.fetch_add(1, std::memory_order_relaxed);  // relaxed: as above.
    Report("threw", Describe(exception));
    result = PlainAnswer(500);
  }
  Response response = AnswerOf(std::move(result));
  if (owes_continue_) keeps_alive_ = false;  // Whether the body comes is the client's choice.
  if (connection_.is_draining()) keeps_alive_ = false;
  return CheckStop().ok() || response.stream ? Send(response) : SendLast(response);
}

absl::Status ServerSession::SendLast(Response& response) {
  keeps_alive_ = false;
  const CancelShield shield;
  const DeadlineScope scope(kLastDuration);
  return Send(response);
}

absl::Status ServerSession::Flush() {
  if (output_.is_empty() || CheckStop().ok()) return output_.Flush();
  const CancelShield shield;
  const DeadlineScope scope(kLastDuration);
  return output_.Flush();
}

Response ServerSession::AnswerOf(absl::StatusOr<Response> result) {
  if (!result.ok()) {
    if (refusal_ != Refusal::kNone) return PlainAnswer(static_cast<int>(refusal_));
    const int status = StatusOf(result.status().code());
    if (status == 500) Report("failed", MessageOf(result.status()));
    return PlainAnswer(status);
  }
  const std::string_view mistake = Mistake(*result);
  if (mistake.empty()) return *std::move(result);
  Report("answers with", mistake);
  return PlainAnswer(500);
}

absl::Status ServerSession::Send(Response& response) {
  status_ = response.status;
  const bool is_head = head_.method == "HEAD";
  const bool is_stream = static_cast<bool>(response.stream);
  using Framing = BodyOutput::Framing;
  Framing framing = Framing::kLength;
  uint64_t bytes = response.body.size();
  if (HasNoBody(response.status)) {
    framing = Framing::kNone;
  } else if (is_stream && response.stream_bytes.has_value()) {
    bytes = *response.stream_bytes;
  } else if (is_stream && head_.minor_version > 0) {
    framing = Framing::kChunked;
  } else if (is_stream) {
    framing = Framing::kToEnd;
    keeps_alive_ = false;
  }
  AppendHead(response, framing, bytes);
  if (is_head || framing == Framing::kNone) return output_.FlushIfFull();
  if (!is_stream) return output_.Append(response.body);
  return SendBody(response, framing, bytes);
}

absl::Status ServerSession::SendBody(Response& response, BodyOutput::Framing framing,
                                     uint64_t bytes) {
  BodyOutput body(output_, framing, bytes);
  absl::Status made;
  const std::exception_ptr exception =
      bobbin::internal::CaptureException([&] { made = response.stream(body); });
  if (exception != nullptr) {
    counters_.exceptions.fetch_add(1, std::memory_order_relaxed);  // relaxed: for people.
    Report("threw in the middle of an answer", Describe(exception));
    made = MakeStatus(absl::StatusCode::kCancelled, "its body was cut off");
  }
  if (made.ok()) made = body.Finish();
  if (made.code() == absl::StatusCode::kOutOfRange) {
    Report("made a body", MessageOf(made));
  }
  return made;
}

void ServerSession::AppendHead(const Response& response, BodyOutput::Framing framing,
                               uint64_t bytes) {
  std::string& text = output_.gathered();
  if (response.status == 200) {
    text.append("HTTP/1.1 200 OK\r\n");
  } else {
    text.append("HTTP/1.1 ");
    AppendNumber(static_cast<uint64_t>(response.status), text);
    text.append(" ").append(StatusText(response.status)).append("\r\n");
  }
  bool has_date = false;
  for (const Field& field : response.fields) {
    if (IsSame(field.name, "Date")) has_date = true;
    if (IsSame(field.name, "Connection")) {
      if (ListHas(field.value, "close")) keeps_alive_ = false;
      if (IsSame(Trim(field.value), "close") || IsSame(Trim(field.value), "keep-alive")) continue;
    }
    AppendField(field.name, field.value, text);
  }
  if (!has_date) {
    const std::time_t now = std::time(nullptr);
    if (now != second_) {
      second_ = now;
      std::tm parts{};
      ::gmtime_r(&now, &parts);
      date_bytes_ =
          std::strftime(date_.data(), date_.size(), "Date: %a, %d %b %Y %T GMT\r\n", &parts);
    }
    text.append(date_.data(), date_bytes_);
  }
  if (framing == BodyOutput::Framing::kLength) {
    text.append("Content-Length: ");
    AppendNumber(bytes, text);
    text.append("\r\n");
  } else if (framing == BodyOutput::Framing::kChunked) {
    text.append("Transfer-Encoding: chunked\r\n");
  }
  if (!keeps_alive_) {
    text.append("Connection: close\r\n");
  } else if (head_.minor_version == 0) {
    text.append("Connection: keep-alive\r\n");
  }
  text.append("\r\n");
}

// --- After the handler

bool ServerSession::AfterBody() {
  if (body_.is_done()) return true;
  if (!Flush().ok()) return false;
  const DeadlineScope scope(body_deadline_);
  return body_.Discard(kDiscardBytesMax);
}

absl::Status ServerSession::AnswerRefusal() {
  counters_.refused.fetch_add(1, std::memory_order_relaxed);  // relaxed: counted for people.
  keeps_alive_ = false;
  head_.method = {};
  head_.minor_version = 1;
  Response response = PlainAnswer(static_cast<int>(refusal_));
  BOBBIN_RETURN_IF_ERROR(Send(response));
  BOBBIN_RETURN_IF_ERROR(Flush());
  Linger();
  return absl::OkStatus();
}

void ServerSession::Linger() {
  // Closing with something unread would have the kernel reset the connection, and the peer lose
  // the answer.
  const bool is_stopping = !CheckStop().ok();
  std::optional<CancelShield> shield;
  if (is_stopping) shield.emplace();
  const DeadlineScope scope(is_stopping ? kLastDuration : kLingerDuration);
  if (!transport_.ShutdownWrite().ok()) return;
  input_.Unpin();
  for (uint64_t left = kDiscardBytesMax; left > 0;) {
    input_.Use(input_.unused().size());
    const absl::StatusOr<size_t> received = transport_.Read(input_.Room());
    if (!received.ok() || *received == 0) return;
    left -= std::min<uint64_t>(left, *received);
  }
}

void ServerSession::Report(std::string_view what, std::string_view why) const {
  bobbin::internal::Tell({.level = LogLevel::kError,
                          .text = fmt::format("{}: the handler of {} {} {}: {}", options_.name,
                                              head_.method, head_.target, what, why),
                          .fields = {{"http.request.method", head_.method}, {"error", why}}});
}

}  // namespace bobbin::io::http::internal
