// SPDX-License-Identifier: Apache-2.0
//
// MailStub: a mail server for demonstrations and tests. It takes every mail, by SMTP, writes a line
// of the log for each, and remembers the latest.
//
//   Called from   virtual threads.
//   Suspends      Start, and the destructor, until its connections have ended.
//   Errors        Start: it cannot listen.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_STUB_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_STUB_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/guarded.h>
#include <bobbin/io/server.h>

#include "docs/examples/shop_lines.h"

namespace shop {

class MailStub {
 public:
  static absl::StatusOr<std::unique_ptr<MailStub>> Start();
  explicit MailStub(bobbin::io::TcpListener listener);

  // "127.0.0.1:2525"
  std::string address() const { return server_.local_address().ToString(); }
  // The latest ones, as they came, the newest last.
  std::vector<std::string> Mails();

 private:
  static constexpr size_t kMailsMax = 100;

  absl::Status Serve(bobbin::io::ServerConnection& connection);
  // What comes between DATA and the point.
  static absl::StatusOr<std::string> ReadMessage(Lines& lines);
  void Keep(std::string message);

  bobbin::Guarded<std::deque<std::string>> mails_;
  bobbin::io::Server server_;  // Last: its threads use the mails.
};

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_MAIL_STUB_H_
