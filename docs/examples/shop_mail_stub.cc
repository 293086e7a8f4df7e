// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/shop_mail_stub.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/log.h>

namespace shop {

namespace {

constexpr size_t kMailBytesMax = size_t{1} << 20;

// In whatever capitals.
bool BeginsWith(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](unsigned char a, unsigned char b) {
           return std::tolower(a) == std::tolower(b);
         });
}

// The value of a header field; empty if there is none.
std::string_view FieldOf(std::string_view message, std::string_view name) {
  for (size_t begin = 0; begin < message.size();) {
    const size_t end = std::min(message.find("\r\n", begin), message.size());
    const std::string_view line = message.substr(begin, end - begin);
    if (line.empty()) break;
    if (BeginsWith(line, name) && line.substr(name.size()).starts_with(": ")) {
      return line.substr(name.size() + 2);
    }
    begin = end + 2;
  }
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MailStub>> MailStub::Start() {
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  return std::make_unique<MailStub>(std::move(listener));
}

MailStub::MailStub(bobbin::io::TcpListener listener)
    : server_({.name = "mail"}, std::move(listener),
              [this](bobbin::io::ServerConnection& connection) { return Serve(connection); }) {}

std::vector<std::string> MailStub::Mails() {
  const auto held = mails_.Lock();
  return {held->begin(), held->end()};
}

absl::Status MailStub::Serve(bobbin::io::ServerConnection& connection) {
  const bobbin::DeadlineScope patience(std::chrono::minutes(1));
  Lines lines(connection.stream());
  BOBBIN_RETURN_IF_ERROR(lines.Write("220 mail stub\r\n"));
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const std::string command, lines.ReadLine());
    const auto is = [&command](std::string_view verb) { return BeginsWith(command, verb); };
    std::string_view answer = "502 unknown";
    if (is("EHLO")) {
      answer = "250-mail stub\r\n250 8BITMIME";
    } else if (is("HELO") || is("MAIL FROM:<") || is("RCPT TO:<") || is("RSET") || is("NOOP")) {
      answer = "250 fine";
    } else if (is("DATA")) {
      BOBBIN_RETURN_IF_ERROR(lines.Write("354 go on\r\n"));
      BOBBIN_ASSIGN_OR_RETURN(std::string message, ReadMessage(lines));
      Keep(std::move(message));
      answer = "250 taken";
    } else if (is("QUIT")) {
      return lines.Write("221 bye\r\n");
    }
    BOBBIN_RETURN_IF_ERROR(lines.Write(fmt::format("{}\r\n", answer)));
  }
}

absl::StatusOr<std::string> MailStub::ReadMessage(Lines& lines) {
  std::string message;
  while (true) {
    const absl::StatusOr<std::string> line = lines.ReadLine();
    BOBBIN_RETURN_IF_ERROR(line.status());
    std::string_view text = *line;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      if (text.empty()) return message;  // A point alone is the end.
    }
    if (message.size() + text.size() > kMailBytesMax) {
      return absl::ResourceExhaustedError("a mail too large");
    }
    message += fmt::format("{}\r\n", text);
  }
}

void MailStub::Keep(std::string message) {
  bobbin::Log(bobbin::LogLevel::kInfo, "mail received",
              {{"to", FieldOf(message, "To")},
               {"subject", FieldOf(message, "Subject")},
               {"traceparent", FieldOf(message, "Traceparent")}});
  const auto held = mails_.Lock();
  held->push_back(std::move(message));
  if (held->size() > kMailsMax) held->pop_front();
}

}  // namespace shop
