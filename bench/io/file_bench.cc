// SPDX-License-Identifier: Apache-2.0
//
// File: 4 KiB read from a file that the system holds in memory. File/RawPread is the bare system
// call, which a carrier must not make: it would wait if the disk had to be asked.
// File/ReadElsewhere is what a read costs that is not done on the spot.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/io/file.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

constexpr size_t kBytes = 4096;

io::File OpenFilled(size_t bytes) {
  auto file = io::File::OpenTemporary();
  BOBBIN_CHECK(file.ok(), "a temporary file");
  BOBBIN_CHECK(file->WriteAt(std::vector<std::byte>(bytes), 0).ok(), "it is filled");
  return *std::move(file);
}

void RawPread(benchmark::State& state) {
  const int fd = ::open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  std::array<std::byte, kBytes> buffer{};
  BOBBIN_CHECK(::write(fd, buffer.data(), kBytes) == kBytes, "it is filled");
  for ([[maybe_unused]] auto _ : state) {
    BOBBIN_CHECK(::pread(fd, buffer.data(), kBytes, 0) == kBytes, "it is read");
  }
  ::close(fd);
}
BENCHMARK(RawPread)->Name("File/RawPread");

void ReadOnTheSpot(benchmark::State& state) {
  OnVirtualThread([&state] {
    io::File file = OpenFilled(kBytes);
    std::array<std::byte, kBytes> buffer;
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(file.ReadAt(buffer, 0).ok(), "it is read");
    }
  });
}
BENCHMARK(ReadOnTheSpot)->Name("File/ReadOnTheSpot");

void ReadElsewhere(benchmark::State& state) {
  OnVirtualThread([&state] {
    io::File file = OpenFilled(kBytes);
    // Room for more than is tried on the spot; the file has no more than the others'.
    std::vector<std::byte> room(io::File::kInlineBytesMax + 1);
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(file.ReadAt(room, 0).ok(), "it is read");
    }
  });
}
BENCHMARK(ReadElsewhere)->Name("File/ReadElsewhere");

}  // namespace
}  // namespace bobbin::bench
