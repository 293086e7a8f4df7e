// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/status.h>
#include <bobbin/db/pg_copy.h>

#include "db/src/limits.h"
#include "db/src/pg_params.h"
#include "db/src/pg_result.h"
#include "db/src/pg_use.h"

namespace bobbin::db {

using internal::PgResult;
using internal::PgUse;

namespace {

absl::Status IsOver() {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, "postgres copy: it has ended");
}

// Reads to the server's readiness. Returns the last result that is not an error.
absl::StatusOr<PgResult> TakeEnd(PgUse& use) {
  absl::Status status;
  PgResult last;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(PgResult result, use.exchange().Next());
    if (result == nullptr) break;
    status.Update(use.exchange().StatusOf(*result));
    last = std::move(result);
  }
  use.set_is_over();
  if (!status.ok()) return status;
  return last;
}

void AppendEscaped(std::string& row, std::string_view value) {
  while (true) {
    const size_t plain = std::min(value.find_first_of("\\\t\n\r"), value.size());
    row.append(value.substr(0, plain));
    if (plain == value.size()) return;
    row += '\\';
    switch (value[plain]) {
      case '\t':
        row += 't';
        break;
      case '\n':
        row += 'n';
        break;
      case '\r':
        row += 'r';
        break;
      default:
        row += '\\';
    }
    value.remove_prefix(plain + 1);
  }
}

}  // namespace

// --- PgCopyIn.

PgCopyIn::PgCopyIn(std::unique_ptr<PgUse> use) : use_(std::move(use)) {}
PgCopyIn::PgCopyIn(PgCopyIn&&) noexcept = default;
PgCopyIn& PgCopyIn::operator=(PgCopyIn&&) noexcept = default;
PgCopyIn::~PgCopyIn() = default;

absl::Status PgCopyIn::Write(std::string_view data) {
  if (use_ == nullptr) return IsOver();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  while (!data.empty()) {
    const std::string_view piece = data.substr(0, internal::kPgCopyBytesMax);
    data.remove_prefix(piece.size());
    absl::Status status = use_->exchange().SendCopyData(piece);
    if (status.ok()) continue;
    // Why the server takes no more says its answer.
    const absl::StatusOr<PgResult> end = TakeEnd(*use_);
    use_.reset();
    return end.ok() ? status : end.status();
  }
  return absl::OkStatus();
}

absl::Status PgCopyIn::WriteSpan(std::span<const Param> params) {
  row_.clear();
  std::string value;
  for (const Param& param : params) {
    if (&param != &params.front()) row_ += '\t';
    value.clear();
    if (internal::AppendText(value, param.content())) {
      AppendEscaped(row_, value);
    } else {
      row_ += "\\N";
    }
  }
  row_ += '\n';
  return Write(row_);
}

absl::StatusOr<int64_t> PgCopyIn::Finish() {
  if (use_ == nullptr) return IsOver();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  const std::unique_ptr<PgUse> use = std::move(use_);
  BOBBIN_RETURN_IF_ERROR(use->exchange().SendCopyEnd());
  BOBBIN_ASSIGN_OR_RETURN(const PgResult result, TakeEnd(*use));
  return result == nullptr ? 0 : internal::ChangesOf(*result);
}

// --- PgCopyOut.

PgCopyOut::PgCopyOut(std::unique_ptr<PgUse> use) : use_(std::move(use)) {}
PgCopyOut::PgCopyOut(PgCopyOut&&) noexcept = default;
PgCopyOut& PgCopyOut::operator=(PgCopyOut&&) noexcept = default;
PgCopyOut::~PgCopyOut() = default;

absl::StatusOr<std::string> PgCopyOut::Read() {
  if (use_ == nullptr) return std::string();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  BOBBIN_ASSIGN_OR_RETURN(std::string row, use_->exchange().NextCopyData());
  if (!row.empty()) return row;
  const std::unique_ptr<PgUse> use = std::move(use_);
  BOBBIN_RETURN_IF_ERROR(TakeEnd(*use).status());
  return std::string();
}

}  // namespace bobbin::db
