// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/message_stream.h"

namespace bobbin::bench {
namespace {

// An odd constant with well-mixed bits: the golden ratio's fraction.
constexpr uint64_t kMix = 0x9e3779b97f4a7c15;

}  // namespace

MessageStream::MessageStream(uint32_t connection, std::span<std::byte> places,
                             std::span<uint64_t> due_at)
    : places_(places),
      due_at_(due_at),
      message_bytes_(places.size() / due_at.size()),
      connection_mark_(connection * kMix) {
  // The body is different for each connection and each place; only the number changes later.
  uint64_t state = connection_mark_;
  for (std::byte& byte : places_) {
    state = state * kMix + 1;
    byte = static_cast<std::byte>(state >> 56);
  }
}

}  // namespace bobbin::bench
