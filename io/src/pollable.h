// SPDX-License-Identifier: Apache-2.0
//
// Pollable: a descriptor as pollers know it - its number, and what tells it from others that have
// had that number.
//
// The system gives the number of a closed descriptor to the next one. A poller that remembers
// something by number compares the serial, which no two sockets of a process share.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          a construction: one atomic addition.

#ifndef BOBBIN_IO_SRC_POLLABLE_H_
#define BOBBIN_IO_SRC_POLLABLE_H_

#include <cstdint>

namespace bobbin::io::internal {

// What a read says that brought less than there was room for.
enum class ShortRead : uint8_t {
  kMayHideMore,  // Nothing: a read may end where a record ends.
  kMeansNoMore,  // All was taken that was there; true of plain TCP without urgent data.
};

struct Pollable {
  // The serial of descriptors that belong to somebody else, who may close them at any time: a
  // poller forgets them as soon as nobody waits.
  static constexpr uint64_t kForeign = 0;

  explicit Pollable(int number, ShortRead what = ShortRead::kMayHideMore) noexcept
      : fd(number), short_read(what), serial(NextSerial()) {}
  static Pollable Foreign(int fd) noexcept { return Pollable(fd, kForeign); }

  const int fd;
  const ShortRead short_read;
  const uint64_t serial;

 private:
  Pollable(int number, uint64_t its_serial) noexcept
      : fd(number), short_read(ShortRead::kMayHideMore), serial(its_serial) {}
  static uint64_t NextSerial() noexcept;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_POLLABLE_H_
