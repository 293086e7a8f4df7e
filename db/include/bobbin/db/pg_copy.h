// SPDX-License-Identifier: Apache-2.0
//
// PgCopyIn, PgCopyOut: rows in bulk, by COPY.
//
// They hold their connection until they end. Each holds no more than some 100 KB: who writes faster
// than the server reads waits, and so does the server for one who reads slowly. A PgCopyIn that is
// destroyed before Finish has inserted nothing.
//
//   Called from   one thread at a time, such as PgPool may be used on.
//   Suspends      all, until there is room, or something has come, or the server has answered.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED, as PgPool::Query; nothing is inserted then. The
//                 destructors are not cut short; see PgServer::cancel_wait_max.
//   Errors        as PgPool::Query. FAILED_PRECONDITION: it has ended before.
//   Lifetime      must end before its pool or transaction does.
//   Cost          a copy of the data into libpq's buffer.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto copy, pool.CopyIn("copy page(id, body) from stdin"));
//   for (const Page& page : pages) BOBBIN_RETURN_IF_ERROR(copy.WriteRow(page.id, page.body));
//   BOBBIN_ASSIGN_OR_RETURN(int64_t rows, copy.Finish());

#ifndef BOBBIN_DB_PG_COPY_H_
#define BOBBIN_DB_PG_COPY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/value.h>

namespace bobbin::db {

namespace internal {
class PgUse;
}  // namespace internal

class PgCopyIn {
 public:
  // For PgPool and PgTransaction.
  explicit PgCopyIn(std::unique_ptr<internal::PgUse> use);
  PgCopyIn(PgCopyIn&&) noexcept;
  PgCopyIn& operator=(PgCopyIn&&) noexcept;
  ~PgCopyIn();

  // A row, for a COPY in its text format, which is the default.
  template <Bindable... Args>
  absl::Status WriteRow(const Args&... args) {
    return WriteSpan(std::array<Param, sizeof...(Args)>{Param(args)...});
  }
  // A piece of the data, in the format that the statement has named; it may end anywhere.
  absl::Status Write(std::string_view data);
  // Ends the data, and returns how many rows were inserted.
  absl::StatusOr<int64_t> Finish();

 private:
  absl::Status WriteSpan(std::span<const Param> params);

  std::unique_ptr<internal::PgUse> use_;  // Null at the end.
  std::string row_;
};

class PgCopyOut {
 public:
  // For PgPool and PgTransaction.
  explicit PgCopyOut(std::unique_ptr<internal::PgUse> use);
  PgCopyOut(PgCopyOut&&) noexcept;
  PgCopyOut& operator=(PgCopyOut&&) noexcept;
  ~PgCopyOut();

  // The next row, as the server writes it, with the end of its line; empty at the end.
  absl::StatusOr<std::string> Read();

 private:
  std::unique_ptr<internal::PgUse> use_;  // Null at the end.
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_COPY_H_
