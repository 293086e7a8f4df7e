// SPDX-License-Identifier: Apache-2.0
//
// WatchTable: what an epoll poller remembers of each descriptor, by its number.
//
// It grows by whole chunks where numbers are used, and never moves: the system gives small numbers
// first, so the table is about as long as the most descriptors that were ever open.
//
//   Called from   the poller's OS thread.
//   Suspends      never.
//   Cost          a look-up: two loads. 48 bytes for each number that has been in use, of the
//                 carriers that have waited for it.

#ifndef BOBBIN_IO_SRC_WATCH_TABLE_H_
#define BOBBIN_IO_SRC_WATCH_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <bobbin/core/internal/intrusive_list.h>

#include "io/src/op.h"

namespace bobbin::io::internal {

// A descriptor that somebody has waited for.
struct Watch {
  uint64_t serial = Pollable::kForeign;  // Whose the rest is.
  uint32_t generation = 0;               // Of what the kernel was told; its events carry it.
  uint32_t interest = 0;                 // What the kernel was told to report; 0: nothing yet.
  // Whether a read would find nothing; an event will tell when that changes.
  bool is_drained = false;
  // Whether there is, or was, something behind the bytes of which no further event will tell: an
  // end, an error, a mark. A read that finds few bytes then says nothing.
  bool has_more_behind = false;
  bobbin::internal::IntrusiveList<Op> waiting;
};

class WatchTable {
 public:
  // That of descriptor number `fd`, which is not negative.
  Watch& At(int fd) {
    const size_t number = static_cast<size_t>(fd);
    const size_t chunk = number / kChunk;
    if (__builtin_expect(chunk >= chunks_.size() || chunks_[chunk] == nullptr, 0)) Grow(chunk);
    return (*chunks_[chunk])[number % kChunk];
  }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (const auto& chunk : chunks_) {
      if (chunk == nullptr) continue;
      for (Watch& watch : *chunk) visit(watch);
    }
  }

 private:
  static constexpr size_t kChunk = 256;
  using Chunk = std::array<Watch, kChunk>;

  void Grow(size_t chunk) {
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    chunks_[chunk] = std::make_unique<Chunk>();
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_WATCH_TABLE_H_
