// SPDX-License-Identifier: Apache-2.0
//
// MemoryReader: copies memory that another thread may be changing, or giving back, right now.
//
// The kernel copies it, so that an address which is gone is an answer and not a fault. What comes
// is what was there, torn or old: who asks must check that it makes sense.
//
//   Called from   any OS thread.
//   Suspends      never.
//   Errors        false, nothing: it is not there, or the system allows no such reading.
//   Cost          a system call, below 1 us for a few lines.

#ifndef BOBBIN_SCHED_SRC_MEMORY_READER_H_
#define BOBBIN_SCHED_SRC_MEMORY_READER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

namespace bobbin::internal {

[[nodiscard]] bool ReadMemory(const void* from, void* to, size_t bytes) noexcept;

template <typename T>
requires std::is_trivially_copyable_v<T> std::optional<T> ReadValue(const void* from)
noexcept {
  T value;
  if (!ReadMemory(from, &value, sizeof(value))) return std::nullopt;
  return value;
}

// A text that ends with a zero, at most `bytes_max` of it; nothing if there is a character that no
// text of ours has.
std::optional<std::string> ReadText(const char* from, size_t bytes_max);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_MEMORY_READER_H_
