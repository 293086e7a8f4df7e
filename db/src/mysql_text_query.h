// SPDX-License-Identifier: Apache-2.0
//
// AskMySql: statements that go to the server as one text.
//
//   Called from   virtual, platform and foreign threads; one at a time.
//   Suspends      until the server has answered.
//   Cancellation  as DriveMySql.
//   Errors        of the first statement that fails, as mysql_error.h; those behind it do not run.
//   Cost          a round trip.

#ifndef BOBBIN_DB_SRC_MYSQL_TEXT_QUERY_H_
#define BOBBIN_DB_SRC_MYSQL_TEXT_QUERY_H_

#include <mysql.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/status.h>
#include <bobbin/db/row.h>

#include "db/src/mysql_error.h"
#include "db/src/mysql_link.h"
#include "db/src/mysql_result.h"

namespace bobbin::db::internal {

struct FreeMySqlResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};
using MySqlResult = std::unique_ptr<MYSQL_RES, FreeMySqlResult>;

// Returns the rows of the last of them that has any. `await` waits for what libmariadb wants.
template <typename Await>
absl::StatusOr<Rows> AskMySql(MYSQL& handle, const Await& await, std::string_view sql) {
  constexpr std::string_view kOperation = "mysql";
  Rows rows;
  int failed = 0;
  BOBBIN_RETURN_IF_ERROR(DriveMySql(
      handle, await,
      [&] { return mysql_real_query_start(&failed, &handle, sql.data(), sql.size()); },
      [&](int got) { return mysql_real_query_cont(&failed, &handle, got); }));
  while (failed == 0) {
    if (mysql_field_count(&handle) != 0) {
      MYSQL_RES* stored = nullptr;
      const absl::Status status = DriveMySql(
          handle, await, [&] { return mysql_store_result_start(&stored, &handle); },
          [&](int got) { return mysql_store_result_cont(&stored, &handle, got); });
      const MySqlResult result(stored);
      BOBBIN_RETURN_IF_ERROR(status);
      if (result == nullptr) break;
      rows = RowsOf(*result);
    }
    if (mysql_more_results(&handle) == 0) return rows;
    BOBBIN_RETURN_IF_ERROR(DriveMySql(
        handle, await, [&] { return mysql_next_result_start(&failed, &handle); },
        [&](int got) { return mysql_next_result_cont(&failed, &handle, got); }));
  }
  return MySqlStatus(ErrorOf(handle), kOperation);
}

inline absl::StatusOr<Rows> AskMySql(MYSQL& handle, std::string_view sql) {
  return AskMySql(
      handle, [&](int wants) { return AwaitMySql(handle, wants); }, sql);
}

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_TEXT_QUERY_H_
