// SPDX-License-Identifier: Apache-2.0
//
// Status matchers: EXPECT_OK, ASSERT_OK, StatusIs(code), IsOkAndHolds(matcher), for absl::Status
// and absl::StatusOr.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define BOBBIN_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bobbin::test {

inline const absl::Status& StatusIn(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusIn(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << "which is " << StatusIn(arg).ToString();
  return StatusIn(arg).ok();
}

MATCHER_P(StatusIs, code,
          std::string(negation ? "has not the code " : "has the code ") +
              absl::StatusCodeToString(code)) {
  *result_listener << "which is " << StatusIn(arg).ToString();
  return StatusIn(arg).code() == code;
}

MATCHER_P(IsOkAndHolds, value, "is OK, and its value is as expected") {
  if (!arg.ok()) {
    *result_listener << "which is " << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

inline constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
inline constexpr absl::StatusCode kCancelled = absl::StatusCode::kCancelled;
inline constexpr absl::StatusCode kDeadlineExceeded = absl::StatusCode::kDeadlineExceeded;
inline constexpr absl::StatusCode kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
inline constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;
inline constexpr absl::StatusCode kResourceExhausted = absl::StatusCode::kResourceExhausted;
inline constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

}  // namespace bobbin::test

#define EXPECT_OK(expression) EXPECT_THAT((expression), ::bobbin::test::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT((expression), ::bobbin::test::IsOk())

#endif  // BOBBIN_TESTS_SUPPORT_STATUS_MATCHERS_H_
