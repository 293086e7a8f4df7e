// SPDX-License-Identifier: Apache-2.0
//
// Status: the two propagation macros, errno as a status, and a look at a status's text.
//
// Everything that can go wrong in operation, cancellation and deadlines included, is an
// absl::Status or absl::StatusOr. Messages read `operation object: cause`, in lower case, without a
// full stop.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          an OK status is one word; a code without a message allocates nothing.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));
//   BOBBIN_RETURN_IF_ERROR(peer.WriteAll(answer));

#ifndef BOBBIN_CORE_STATUS_H_
#define BOBBIN_CORE_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bobbin {

// The status for `error_number` (an errno value, positive): the canonical code that abseil assigns,
// and the message "<operation>: <the system's text>". REQUIRES: error_number > 0.
absl::Status ErrnoStatus(int error_number, std::string_view operation);

// A status with `code` and `message`. Saves callers the border between std::string_view and the
// string view of abseil, which are two types where abseil was built for C++14.
absl::Status MakeStatus(absl::StatusCode code, std::string_view message);

// The message of `status` as the standard library's view; valid as long as `status` is.
inline std::string_view MessageOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace bobbin

#define BOBBIN_STATUS_CONCAT_INNER(a, b) a##b
#define BOBBIN_STATUS_CONCAT(a, b) BOBBIN_STATUS_CONCAT_INNER(a, b)

// Returns the status of `expression` from the enclosing function unless it is OK. The expression
// may hold a lambda that uses the macro itself.
#define BOBBIN_RETURN_IF_ERROR(expression) \
  BOBBIN_RETURN_IF_ERROR_INNER(BOBBIN_STATUS_CONCAT(bobbin_status_, __LINE__), expression)
#define BOBBIN_RETURN_IF_ERROR_INNER(holder, expression)                \
  if (absl::Status holder = (expression); !holder.ok()) /* NOLINT */ \
  return holder

// Evaluates `expression` (a StatusOr); returns its status from the enclosing function unless it is
// OK, else moves its value into `target`, which may be a declaration.
#define BOBBIN_ASSIGN_OR_RETURN(target, expression) \
  BOBBIN_ASSIGN_OR_RETURN_INNER(BOBBIN_STATUS_CONCAT(bobbin_or_, __LINE__), target, expression)
#define BOBBIN_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                     \
  if (!holder.ok()) return std::move(holder).status();            \
  target = *std::move(holder)

#endif  // BOBBIN_CORE_STATUS_H_
