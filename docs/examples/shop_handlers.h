// SPDX-License-Identifier: Apache-2.0
//
// Handlers: what the shop answers to requests.
//
//   POST /orders        takes an order, {"item": "tea", "customer": "ada@example.org"}
//   GET  /orders/1      tells of one
//   GET  /health        503 once the shop is asked to stop
//   GET  /metrics       for Prometheus
//   GET  /mails         what the stub of a mail server has taken, if there is one
//
//   Called from   virtual threads; any number at a time.
//   Suspends      while it waits for the body and for the database. The receipt is sent later.
//   Lifetime      What the constructor is given outlives the object, and that the server.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_HANDLERS_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_HANDLERS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/http/router.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/metrics.h>

#include "docs/examples/shop_mail_stub.h"
#include "docs/examples/shop_orders.h"

namespace shop {

class Handlers {
 public:
  // `stub` may be null.
  static absl::StatusOr<std::unique_ptr<Handlers>> Make(Orders& orders, bobbin::Executor& mail,
                                                        std::string mail_server, MailStub* stub,
                                                        bobbin::Metrics& metrics);

  // Answers a request, counts it, and takes its time.
  absl::StatusOr<bobbin::io::http::Response> operator()(bobbin::io::http::Request& request) const;

 private:
  struct Series {
    bobbin::Counter orders;
    bobbin::Counter receipts;
    bobbin::Gauge active;
    bobbin::MetricFamily<bobbin::Histogram> durations;
  };

  Handlers(Orders& orders, bobbin::Executor& mail, std::string mail_server, Series series)
      : orders_(orders), mail_(mail), mail_server_(std::move(mail_server)), series_(series) {}

  void AddRoutes(MailStub* stub, bobbin::Metrics& metrics);
  absl::StatusOr<bobbin::io::http::Response> Take(bobbin::io::http::Request& request);
  absl::StatusOr<bobbin::io::http::Response> Show(bobbin::io::http::Request& request);
  absl::Status SendReceipt(const Order& order);

  Orders& orders_;
  bobbin::Executor& mail_;
  const std::string mail_server_;
  const Series series_;
  bobbin::io::http::Router router_;
};

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_HANDLERS_H_
