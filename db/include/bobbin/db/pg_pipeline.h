// SPDX-License-Identifier: Apache-2.0
//
// PgPipeline: statements that are sent together, without waiting for the answer to one before
// sending the next.
//
// They take one round trip in all, and are one transaction: they take effect together, or not at
// all. What one returns cannot be a value of a later one. Run it with PgPool::RunPipeline, or
// inside a transaction, of which it is then a part.
//
//   Called from   any thread; one at a time.
//   Suspends      never; running it does.
//   Lifetime      It holds copies of the values. It may be run again.
//   Cost          a copy of the texts and values.
//
// Example:
//   bobbin::db::PgPipeline inserts;
//   for (const Row& row : rows) inserts.Add("insert into t values ($1, $2)", row.id, row.name);
//   BOBBIN_RETURN_IF_ERROR(pool.RunPipeline(inserts).status());

#ifndef BOBBIN_DB_PG_PIPELINE_H_
#define BOBBIN_DB_PG_PIPELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <bobbin/db/row.h>
#include <bobbin/db/value.h>

namespace bobbin::db {

namespace internal {
class PgConnection;
struct PgStatement;
}  // namespace internal

// What a statement gave.
struct PgAnswer {
  Rows rows = {};
  // How many rows it has inserted, updated or deleted.
  int64_t changes = 0;
};

class PgPipeline {
 public:
  PgPipeline();
  PgPipeline(PgPipeline&&) noexcept;
  PgPipeline& operator=(PgPipeline&&) noexcept;
  ~PgPipeline();

  // Adds a statement. A value that cannot be sent is reported when the pipeline is run.
  template <Bindable... Args>
  void Add(Sql sql, const Args&... args) {
    AddSpan(sql, std::array<Param, sizeof...(Args)>{Param(args)...});
  }
  size_t size() const;

 private:
  friend class internal::PgConnection;
  void AddSpan(Sql sql, std::span<const Param> params);

  std::vector<internal::PgStatement> statements_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_PIPELINE_H_
