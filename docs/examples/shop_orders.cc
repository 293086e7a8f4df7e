// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/shop_orders.h"

#include <string_view>

#include <bobbin/core/status.h>

namespace shop {

absl::Status Orders::MakeTable() {
  return database_.ExecuteScript(
      "create table if not exists orders(id integer primary key, item text not null,"
      " customer text not null, has_receipt integer not null default 0) strict");
}

// [orders]
absl::StatusOr<int64_t> Orders::Add(const Order& order) {
  BOBBIN_ASSIGN_OR_RETURN(
      bobbin::db::Rows rows,
      database_.Query("insert into orders(item, customer) values (?1, ?2) returning id", order.item,
                      order.customer));
  return rows.Only<int64_t>();
}
// [/orders]

absl::StatusOr<Order> Orders::Find(int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(
      bobbin::db::Rows rows,
      database_.Query("select item, customer, has_receipt from orders where id = ?1", id));
  for (const auto& [item, customer, has_receipt] :
       rows.As<std::string_view, std::string_view, int64_t>()) {
    return Order{.id = id,
                 .item = std::string(item),
                 .customer = std::string(customer),
                 .has_receipt = has_receipt != 0};
  }
  return absl::NotFoundError("no such order");
}

absl::Status Orders::NoteReceipt(int64_t id) {
  return database_.Execute("update orders set has_receipt = 1 where id = ?1", id).status();
}

absl::StatusOr<int64_t> Orders::CountWithoutReceipt() {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Rows rows,
                          database_.Query("select count(*) from orders where has_receipt = 0"));
  return rows.Only<int64_t>();
}

}  // namespace shop
