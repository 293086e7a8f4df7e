// SPDX-License-Identifier: Apache-2.0
//
// MySqlParams: values as libmariadb wants them.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT: an array, a number that is none, a time beyond the year 9999.
//   Lifetime      Borrows texts and blobs.

#ifndef BOBBIN_DB_SRC_MYSQL_PARAMS_H_
#define BOBBIN_DB_SRC_MYSQL_PARAMS_H_

#include <mysql.h>

#include <cstddef>
#include <span>
#include <string>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include <bobbin/db/value.h>

namespace bobbin::db::internal {

class MySqlParams {
 public:
  MySqlParams() = default;
  MySqlParams(const MySqlParams&) = delete;
  MySqlParams& operator=(const MySqlParams&) = delete;

  // For each place the value that goes there.
  absl::Status Bind(std::span<const Param> params, std::span<const size_t> places);
  // For libmariadb; valid as long as this.
  MYSQL_BIND* binds() { return binds_.data(); }

 private:
  // What a bind points to.
  using Held =
      std::variant<std::monostate, signed char, long long, double, MYSQL_TIME, std::string>;

  // Fills in one bind; returns why it cannot, or nothing.
  static std::string_view BindOne(const Param::Content& content, Held& held, MYSQL_BIND& bind);

  absl::InlinedVector<Held, 8> held_;
  absl::InlinedVector<MYSQL_BIND, 8> binds_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_PARAMS_H_
