// SPDX-License-Identifier: Apache-2.0
//
// PgUse: an exchange that goes on between calls - a stream's, or a copy's.
//
//   Called from   one thread at a time.
//   Suspends      the destructor, when the exchange has not come to its end: the server is to end
//                 it.

#ifndef BOBBIN_DB_SRC_PG_USE_H_
#define BOBBIN_DB_SRC_PG_USE_H_

#include <memory>
#include <string>
#include <utility>

#include "db/src/pg_connection.h"
#include "db/src/pg_pool_core.h"

namespace bobbin::db::internal {

class PgUse {
 public:
  // `lease` may be empty, if somebody else has the connection for longer.
  PgUse(PgLease lease, PgConnection& connection, std::string_view sql)
      : lease_(std::move(lease)), connection_(connection), sql_(sql), exchange_(connection, sql_) {
    connection_.set_is_lent(true);
  }
  PgUse(const PgUse&) = delete;
  PgUse& operator=(const PgUse&) = delete;
  ~PgUse() {
    if (!is_over_) exchange_.Drop();
    connection_.set_is_lent(false);
  }

  PgConnection& connection() const { return connection_; }
  PgExchange& exchange() { return exchange_; }
  // The server is ready for something else.
  void set_is_over() { is_over_ = true; }

 private:
  PgLease lease_;
  PgConnection& connection_;
  const std::string sql_;
  PgExchange exchange_;
  bool is_over_ = false;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_USE_H_
