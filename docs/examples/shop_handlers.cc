// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/shop_handlers.h"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include <nlohmann/json.hpp>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/prometheus.h>

#include "docs/examples/shop_mail.h"

namespace shop {

using namespace std::chrono_literals;
namespace http = bobbin::io::http;

namespace {

absl::StatusOr<Order> OrderOf(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("item", nlohmann::json()).is_string() ||
      !json.value("customer", nlohmann::json()).is_string()) {
    return absl::InvalidArgumentError("an order has an item and a customer");
  }
  Order order{.item = json["item"], .customer = json["customer"]};
  if (order.item.size() > 200) return absl::InvalidArgumentError("an item is a short text");
  if (!IsAddress(order.customer)) return absl::InvalidArgumentError("no address of a mailbox");
  return order;
}

http::Response JsonOf(int status, const Order& order) {
  const nlohmann::ordered_json json = {{"id", order.id},
                                       {"item", order.item},
                                       {"customer", order.customer},
                                       {"has_receipt", order.has_receipt}};
  return {.status = status,
          .fields = {{"Content-Type", "application/json"}},
          .body = json.dump() + "\n"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Handlers>> Handlers::Make(Orders& orders, bobbin::Executor& mail,
                                                         std::string mail_server, MailStub* stub,
                                                         bobbin::Metrics& metrics) {
  // [metrics]
  BOBBIN_ASSIGN_OR_RETURN(const auto taken, metrics.MakeCounter({.name = "shop.orders"}));
  BOBBIN_ASSIGN_OR_RETURN(const auto receipts, metrics.MakeCounter({.name = "shop.receipts"}));
  BOBBIN_ASSIGN_OR_RETURN(const auto active,
                          metrics.MakeGauge({.name = "http.server.active_requests"}));
  BOBBIN_ASSIGN_OR_RETURN(
      const auto durations,
      metrics.MakeHistogram({.name = "http.server.request.duration", .unit = "ms"}));
  // [/metrics]
  std::unique_ptr<Handlers> handlers(new Handlers(
      orders, mail, std::move(mail_server), {taken.At(), receipts.At(), active.At(), durations}));
  handlers->AddRoutes(stub, metrics);
  return handlers;
}

// [routes]
void Handlers::AddRoutes(MailStub* stub, bobbin::Metrics& metrics) {
  router_.Handle("POST /orders", [this](http::Request& request) { return Take(request); });
  router_.Handle("GET /orders/", [this](http::Request& request) { return Show(request); });
  router_.Handle("GET /metrics", [&metrics](http::Request&) {
    return http::Response{.fields = {{"Content-Type", std::string(bobbin::kPrometheusContentType)}},
                          .body = bobbin::PrometheusText(metrics.Snapshot())};
  });
  router_.Handle("GET /health", [&life = bobbin::CurrentLifecycle()](http::Request&) {
    if (life.stopping().IsSet()) return http::Response{.status = 503, .body = "stopping\n"};
    return http::Response{.body = "up\n"};
  });
  // [/routes]
  if (stub == nullptr) return;
  router_.Handle("GET /mails", [stub](http::Request&) {
    http::Response response{.fields = {{"Content-Type", "text/plain; charset=utf-8"}}};
    for (const std::string& mail : stub->Mails()) response.body += mail + "\r\n";
    return response;
  });
}

// [timed]
absl::StatusOr<http::Response> Handlers::operator()(http::Request& request) const {
  series_.active.Add(1);
  const absl::Cleanup no_longer = [this] { series_.active.Add(-1); };
  const bobbin::MonotonicTime begin = bobbin::MonotonicNow();
  absl::StatusOr<http::Response> answer = router_(request);
  const std::chrono::duration<double, std::milli> taken = bobbin::MonotonicNow() - begin;
  series_.durations
      .At({{"http.request.method", request.method()},
           {"http.route", request.route()},
           {"http.response.status_code", answer.ok() ? answer->status : 500}})
      .Record(taken.count());
  return answer;
}
// [/timed]

// [take]
absl::StatusOr<http::Response> Handlers::Take(http::Request& request) {
  BOBBIN_ASSIGN_OR_RETURN(const std::string body, request.ReadAll());
  BOBBIN_ASSIGN_OR_RETURN(Order order, OrderOf(body));  // INVALID_ARGUMENT is answered by a 400.
  BOBBIN_ASSIGN_OR_RETURN(order.id, orders_.Add(order));

  const bobbin::LogFields fields({{"order", order.id}});  // Of every line from here on.
  bobbin::Log(bobbin::LogLevel::kInfo, "order taken", {{"item", order.item}});
  series_.orders.Add();

  // In the background, but in this request's trace, and with its fields.
  const absl::Status submitted = mail_.Submit({.name = "receipt", .retry = {.attempts_max = 5}},
                                              [this, order] { return SendReceipt(order); });
  if (!submitted.ok()) {  // The order stands: whoever looks for missing receipts finds it.
    bobbin::Log(bobbin::LogLevel::kWarning, "no receipt", {{"why", submitted.ToString()}});
  }
  return JsonOf(201, order);
}
// [/take]

// [receipt]
absl::Status Handlers::SendReceipt(const Order& order) {
  const bobbin::DeadlineScope patience(10s);
  BOBBIN_RETURN_IF_ERROR(
      SendMail(mail_server_, {.from = "orders@shop.example",
                              .to = order.customer,
                              .subject = fmt::format("Your order {}", order.id),
                              .text = fmt::format("Thank you for ordering: {}", order.item)}));
  BOBBIN_RETURN_IF_ERROR(orders_.NoteReceipt(order.id));
  series_.receipts.Add();
  bobbin::Log(bobbin::LogLevel::kInfo, "receipt sent");
  return absl::OkStatus();
}
// [/receipt]

absl::StatusOr<http::Response> Handlers::Show(http::Request& request) {
  const std::string_view path = request.path();
  int64_t id = 0;
  if (!absl::SimpleAtoi(std::string(path.substr(path.rfind('/') + 1)), &id)) {
    return absl::NotFoundError("no such order");
  }
  BOBBIN_ASSIGN_OR_RETURN(const Order order, orders_.Find(id));
  return JsonOf(200, order);
}

}  // namespace shop
