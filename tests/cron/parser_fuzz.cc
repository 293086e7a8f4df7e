// SPDX-License-Identifier: Apache-2.0
//
// The parser under a fuzzer: any bytes are an expression, or a mistake with a place in them.
//
// With Clang's libFuzzer it is a program of its own (cron_parser_fuzz); fuzz_test.cc calls it with
// random bytes and with mutations of the tables in data/.

#include "tests/cron/parser_fuzz.h"

#include <optional>
#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/expression.h>

namespace bobbin::test {

void ParseAnything(std::string_view text) {
  const std::optional<cron::Mistake> mistake = cron::FindMistake(text);
  const absl::StatusOr<cron::Expression> expression = cron::Expression::Parse(text);
  BOBBIN_CHECK(expression.ok() == !mistake, "both see the same");
  if (mistake) {
    BOBBIN_CHECK(mistake->column >= 1 && mistake->column - 1 + mistake->length <= text.size(),
                 "the part is in the text");
    BOBBIN_CHECK(!mistake->Text(text).empty() && mistake->Text(text).size() < 1000,
                 "it is said, in short");
    BOBBIN_CHECK(MessageOf(expression.status()).find('\n') == std::string::npos, "in one line");
    BOBBIN_CHECK((mistake->kind == cron::Mistake::Kind::kNever) == cron::WhyNever(text).has_value(),
                 "there is a reason only for what never comes");
    return;
  }
  BOBBIN_CHECK(!expression->Describe().empty(), "it can be described");
  const absl::StatusOr<cron::Expression> again = cron::Expression::Parse(expression->ToString());
  BOBBIN_CHECK(again.ok() && *again == *expression, "its text means the same");
  // What is no mistake comes true, and is found in both directions.
  const std::optional<absl::CivilSecond> next = expression->Next(absl::CivilSecond(2024, 2, 29));
  BOBBIN_CHECK(next && expression->Matches(*next), "there is a next time");
  BOBBIN_CHECK(expression->Previous(*next + 1) == next, "and it is the last one before later");
}

}  // namespace bobbin::test

#if defined(BOBBIN_LIBFUZZER)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bobbin::test::ParseAnything({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
