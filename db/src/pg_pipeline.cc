// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include <bobbin/db/pg_pipeline.h>

#include "db/src/pg_statement.h"

namespace bobbin::db {

PgPipeline::PgPipeline() = default;
PgPipeline::PgPipeline(PgPipeline&&) noexcept = default;
PgPipeline& PgPipeline::operator=(PgPipeline&&) noexcept = default;
PgPipeline::~PgPipeline() = default;

size_t PgPipeline::size() const { return statements_.size(); }

void PgPipeline::AddSpan(Sql sql, std::span<const Param> params) {
  absl::StatusOr<internal::PgParams> values = internal::PgParams::Of(params);
  if (values.ok()) values->Own();
  statements_.push_back({std::string(sql.text()), std::move(values)});
}

}  // namespace bobbin::db
