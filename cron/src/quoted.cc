// SPDX-License-Identifier: Apache-2.0

#include "cron/src/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

#include "cron/src/limits.h"

namespace bobbin::cron::internal {

std::string Quoted(std::string_view text) {
  const std::string_view shown = text.substr(0, kTextBytesShown);
  return "\"" + absl::CHexEscape(absl::string_view(shown.data(), shown.size())) +
         (shown.size() < text.size() ? "..." : "") + "\"";
}

}  // namespace bobbin::cron::internal
