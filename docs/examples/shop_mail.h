// SPDX-License-Identifier: Apache-2.0
//
// SendMail: hands a mail to a mail server, by SMTP (RFC 5321).
//
//   Called from   virtual threads; any number at a time.
//   Suspends      while the server takes its time.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; the server has then taken the mail or not.
//   Errors        UNAVAILABLE: there is no server, or it says to come again (4xx).
//                 FAILED_PRECONDITION: it says no (5xx). INVALID_ARGUMENT: an address is none.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shop {

struct Mail {
  std::string from;
  std::string to;
  std::string subject;  // One line.
  std::string text;
};

// Whether it can stand in a command and in a header, and end neither.
bool IsAddress(std::string_view text);

absl::Status SendMail(std::string_view server, const Mail& mail);

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_H_
