// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/output.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>

namespace bobbin::io::http::internal {

absl::Status Output::Append(std::string_view bytes) {
  if (bytes.size() >= kGatheredMax) return Send(bytes);
  gathered_.append(bytes);
  return FlushIfFull();
}

absl::Status Output::Send(std::string_view last) {
  if (!failure_.ok()) return failure_;
  std::string_view first = gathered_;
  while (!first.empty() || !last.empty()) {
    const DeadlineScope scope(write_duration_);
    const absl::StatusOr<size_t> sent = transport_.Write(first, last);
    if (!sent.ok()) {
      failure_ = sent.status();
      break;
    }
    const size_t of_first = std::min(*sent, first.size());
    first.remove_prefix(of_first);
    last.remove_prefix(*sent - of_first);
  }
  gathered_.clear();
  return failure_;
}

absl::Status BodyOutput::Write(std::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  switch (framing_) {
    case Framing::kNone:
      return absl::OkStatus();
    case Framing::kToEnd:
      return output_.Append(bytes);
    case Framing::kLength:
      if (bytes.size() > left_) {
        return MakeStatus(absl::StatusCode::kOutOfRange,
                          "write body: more than the length that was announced");
      }
      left_ -= bytes.size();
      return output_.Append(bytes);
    case Framing::kChunked:
      break;
  }
  std::array<char, 16> digits;
  char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16).ptr;
  output_.gathered().append(digits.data(), end).append("\r\n");
  BOBBIN_RETURN_IF_ERROR(output_.Append(bytes));
  output_.gathered().append("\r\n");
  return output_.FlushIfFull();
}

absl::Status BodyOutput::Finish() {
  if (framing_ == Framing::kLength && left_ != 0) {
    return MakeStatus(absl::StatusCode::kOutOfRange,
                      "write body: less than the length that was announced");
  }
  if (framing_ == Framing::kChunked) output_.gathered().append("0\r\n\r\n");
  return absl::OkStatus();
}

void AppendNumber(uint64_t number, std::string& text) {
  std::array<char, 20> digits;
  text.append(digits.data(),
              std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void AppendField(std::string_view name, std::string_view value, std::string& text) {
  text.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace bobbin::io::http::internal
