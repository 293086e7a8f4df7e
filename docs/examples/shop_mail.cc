// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/shop_mail.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/trace_context.h>

#include "docs/examples/shop_lines.h"

namespace shop {

bool IsAddress(std::string_view text) {
  return text.size() < 255 && text.find('@') != text.npos &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '<' && c != '>'; });
}

namespace {

// Sends a command, if it is not empty, and reads the answer to it, which begins with `code`.
absl::Status Say(Lines& server, std::string_view command, std::string_view code) {
  if (!command.empty()) BOBBIN_RETURN_IF_ERROR(server.Write(fmt::format("{}\r\n", command)));
  std::string line;
  do {
    BOBBIN_ASSIGN_OR_RETURN(line, server.ReadLine());
  } while (line.size() > 3 && line[3] == '-');  // There are more lines.
  if (line.starts_with(code)) return absl::OkStatus();
  if (line.starts_with('4')) return absl::UnavailableError(line);
  return absl::FailedPreconditionError(line);
}

std::string Message(const Mail& mail) {
  std::string message = fmt::format(
      "From: <{}>\r\nTo: <{}>\r\nSubject: {}\r\nDate: {}\r\nMIME-Version: 1.0\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n",
      mail.from, mail.to, mail.subject,
      absl::FormatTime("%a, %d %b %Y %H:%M:%S %z", absl::Now(), absl::UTCTimeZone()));
  if (const bobbin::SpanContext* const span = bobbin::Span::Current()) {
    message += fmt::format("Traceparent: {}\r\n", bobbin::TraceParentOf(*span));
  }
  message += "\r\n";
  const std::string text = absl::StrReplaceAll(mail.text, {{"\r", ""}});
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    // A point alone would end it.
    message += fmt::format("{}{}\r\n", line.starts_with('.') ? "." : "", line);
  }
  return message + ".";
}

}  // namespace

// [send]
absl::Status SendMail(std::string_view server, const Mail& mail) {
  if (!IsAddress(mail.from) || !IsAddress(mail.to)) return absl::InvalidArgumentError("no address");
  bobbin::Span span({.name = "send mail", .kind = bobbin::SpanKind::kClient});
  const absl::Status sent = [&]() -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(auto stream, bobbin::io::TcpStream::Connect(server));
    Lines lines(stream);
    BOBBIN_RETURN_IF_ERROR(Say(lines, "", "220"));
    BOBBIN_RETURN_IF_ERROR(Say(lines, "EHLO shop.example", "250"));
    BOBBIN_RETURN_IF_ERROR(Say(lines, fmt::format("MAIL FROM:<{}>", mail.from), "250"));
    BOBBIN_RETURN_IF_ERROR(Say(lines, fmt::format("RCPT TO:<{}>", mail.to), "250"));
    BOBBIN_RETURN_IF_ERROR(Say(lines, "DATA", "354"));
    BOBBIN_RETURN_IF_ERROR(Say(lines, Message(mail), "250"));  // From here on it is the server's.
    Say(lines, "QUIT", "221").IgnoreError();
    return absl::OkStatus();
  }();
  span.SetStatus(sent);
  return sent;
}
// [/send]

}  // namespace shop
