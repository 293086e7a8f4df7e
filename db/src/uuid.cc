// SPDX-License-Identifier: Apache-2.0

#include <bobbin/db/uuid.h>

#include "db/src/hex.h"

namespace bobbin::db {

namespace {
constexpr size_t kTextBytes = 36;

constexpr bool IsDashAt(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }
}  // namespace

std::optional<Uuid> Uuid::Parse(std::string_view text) {
  if (text.size() != kTextBytes) return std::nullopt;
  Uuid uuid;
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDashAt(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int digit = internal::HexDigit(text[i]);
    if (digit < 0) return std::nullopt;
    std::byte& byte = uuid.bytes[digits++ / 2];
    byte = byte << 4 | static_cast<std::byte>(digit);
  }
  return uuid;
}

std::string Uuid::Text() const {
  std::string text;
  text.reserve(kTextBytes);
  for (const std::byte byte : bytes) {
    if (IsDashAt(text.size())) text += '-';
    internal::AppendHex(text, byte);
  }
  return text;
}

}  // namespace bobbin::db
