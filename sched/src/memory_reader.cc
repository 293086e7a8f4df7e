// SPDX-License-Identifier: Apache-2.0

#include "sched/src/memory_reader.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace bobbin::internal {

namespace {
constexpr size_t kPieceBytes = 64;  // Divides a page: no piece reaches into the next one.
}  // namespace

bool ReadMemory(const void* from, void* to, size_t bytes) noexcept {
  if (from == nullptr) return false;
  const iovec local = {to, bytes};
  const iovec remote = {const_cast<void*>(from), bytes};
  // Not the library's function: a sanitizer would look at what is read. Its arguments are words: of
  // an int, whatever was above it would be passed, too.
  const long read = syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL);
  return read == static_cast<long>(bytes);
}

std::optional<std::string> ReadText(const char* from, size_t bytes_max) {
  std::string text;
  while (text.size() < bytes_max) {
    char piece[kPieceBytes];
    const size_t offset = reinterpret_cast<uintptr_t>(from) % kPieceBytes;
    const size_t bytes = std::min(kPieceBytes - offset, bytes_max - text.size());
    if (!ReadMemory(from, piece, bytes)) return std::nullopt;
    char* const end = std::find(piece, piece + bytes, '\0');
    const bool is_text =
        std::none_of(piece, end, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (!is_text) return std::nullopt;
    text.append(piece, end);
    if (end != piece + bytes) break;
    from += bytes;
  }
  return text;
}

}  // namespace bobbin::internal
