// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/sql_units.h"

#include <cstdint>

#include "fmt/format.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>

#include "bench/compare/random.h"

namespace bobbin::compare {
namespace {

// One question in so many is for ten rows.
constexpr uint64_t kQuestionsPerLongOne = 8;

}  // namespace

absl::Status AskDatabase(db::Database& database, const Questions& questions, size_t unit,
                         Measurement& measurement) {
  Random random(unit);
  while (true) {
    const bool is_long = random.Below(kQuestionsPerLongOne) == 0;
    const size_t expected = is_long ? 10 : 1;
    const MonotonicTime begun = MonotonicNow();
    BOBBIN_ASSIGN_OR_RETURN(const db::Rows rows,
                            database.Query(is_long ? questions.ten_rows : questions.one_row));
    if (rows.size() != expected) {
      return MakeStatus(absl::StatusCode::kInternal,
                        fmt::format("{} rows, not {}", rows.size(), expected));
    }
    const MonotonicTime now = MonotonicNow();
    if (!measurement.Record(now, now - begun)) return absl::OkStatus();
  }
}

}  // namespace bobbin::compare
