// SPDX-License-Identifier: Apache-2.0
//
// PgStream: a result that is read while it comes, for those that do not fit into memory.
//
// It holds its connection until it ends. What is not asked for is not read, so that a slow reader
// slows down the server. One that is destroyed early has the server end the statement; in a
// transaction it must be gone before the transaction goes on.
//
//   Called from   one thread at a time, such as PgPool may be used on.
//   Suspends      Next, until rows have come; the destructor, until the server has ended the
//                 statement.
//   Cancellation  Next: CANCELLED or DEADLINE_EXCEEDED, as PgPool::Query. The destructor is not cut
//                 short; see PgServer::cancel_wait_max.
//   Errors        as PgPool::Query, also after the first rows.
//   Lifetime      must end before its pool or transaction does.
//   Cost          two allocations of libpq's for each row.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto stream, pool.Stream("select id, body from page"));
//   while (true) {
//     BOBBIN_ASSIGN_OR_RETURN(const bobbin::db::Rows rows, stream.Next());
//     if (rows.empty()) break;
//     for (auto [id, body] : rows.As<int64_t, std::string_view>()) Index(id, body);
//   }

#ifndef BOBBIN_DB_PG_STREAM_H_
#define BOBBIN_DB_PG_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/row.h>

namespace bobbin::db {

namespace internal {
class PgUse;
}  // namespace internal

class PgStream {
 public:
  // For PgPool and PgTransaction.
  explicit PgStream(std::unique_ptr<internal::PgUse> use);
  PgStream(PgStream&&) noexcept;
  PgStream& operator=(PgStream&&) noexcept;
  ~PgStream();

  // The rows that have come, at least one and some hundreds at most; none at the end.
  absl::StatusOr<Rows> Next();

 private:
  std::unique_ptr<internal::PgUse> use_;  // Null at the end.
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_STREAM_H_
