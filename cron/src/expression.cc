// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/cron/expression.h>

#include "cron/src/english.h"
#include "cron/src/quoted.h"
#include "cron/src/spelling.h"

namespace bobbin::cron {

absl::StatusOr<Expression> Expression::Parse(std::string_view text) {
  const internal::Parser parser(text);
  if (parser.mistake()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("parse cron expression {}: {}", internal::Quoted(text),
                                  parser.mistake()->Text(text)));
  }
  return Expression(parser.sets());
}

absl::StatusOr<std::optional<Expression>> Expression::ParseUnlessDisabled(std::string_view text) {
  if (text == "-") return std::optional<Expression>();
  BOBBIN_ASSIGN_OR_RETURN(const Expression expression, Parse(text));
  return std::optional<Expression>(expression);
}

std::string Expression::Describe() const { return internal::InEnglish(sets_); }

std::string Expression::ToString() const { return internal::Spell(sets_); }

std::optional<std::string> WhyNever(std::string_view text) {
  const internal::Parser parser(text);
  if (!parser.mistake() || parser.mistake()->kind != Mistake::Kind::kNever) return std::nullopt;
  return internal::WhyNoDay(parser.sets());
}

}  // namespace bobbin::cron
