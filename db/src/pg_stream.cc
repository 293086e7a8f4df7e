// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/status.h>
#include <bobbin/db/pg_stream.h>

#include "db/src/limits.h"
#include "db/src/pg_result.h"
#include "db/src/pg_use.h"

namespace bobbin::db {

using internal::PgResult;
using internal::PgRows;
using internal::PgUse;

PgStream::PgStream(std::unique_ptr<PgUse> use) : use_(std::move(use)) {}
PgStream::PgStream(PgStream&&) noexcept = default;
PgStream& PgStream::operator=(PgStream&&) noexcept = default;
PgStream::~PgStream() = default;

absl::StatusOr<Rows> PgStream::Next() {
  if (use_ == nullptr) return Rows();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  PgRows rows;
  absl::Status status;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const PgResult result, use_->exchange().Next());
    if (result == nullptr) {
      use_->set_is_over();
      use_.reset();
      break;
    }
    status.Update(use_->exchange().StatusOf(*result));
    // A COPY has rows of another kind, and no end here.
    if (internal::IsCopy(PQresultStatus(result.get()))) return use_->exchange().RefuseCopy();
    if (PQresultStatus(result.get()) == PGRES_SINGLE_TUPLE) rows.Add(*result);
    if (!status.ok()) continue;
    if (rows.size() >= internal::kPgStreamRowsMax || rows.bytes() >= internal::kPgStreamBytesMax) {
      break;
    }
    // What is there is more use to the caller than what may come.
    if (rows.size() > 0 && !use_->exchange().HasNext()) break;
  }
  if (!status.ok()) return status;
  return std::move(rows).Build();
}

}  // namespace bobbin::db
