// SPDX-License-Identifier: Apache-2.0
//
// Orders: what the shop has sold, in a database.
//
//   Called from   virtual threads; any number at a time.
//   Suspends      all of them, as the database does.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED.
//   Errors        NOT_FOUND: there is no such order. Others: the database's.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_ORDERS_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_ORDERS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/database.h>

namespace shop {

struct Order {
  int64_t id = 0;
  std::string item;
  std::string customer;  // An address of a mailbox.
  bool has_receipt = false;
};

class Orders {
 public:
  explicit Orders(bobbin::db::Database& database) : database_(database) {}

  absl::Status MakeTable();
  // Its number.
  absl::StatusOr<int64_t> Add(const Order& order);
  absl::StatusOr<Order> Find(int64_t id);
  absl::Status NoteReceipt(int64_t id);
  // Those whose receipt has not been sent.
  absl::StatusOr<int64_t> CountWithoutReceipt();

 private:
  bobbin::db::Database& database_;
};

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_ORDERS_H_
