// SPDX-License-Identifier: Apache-2.0
//
// PerCpu: an object for each CPU, so that threads that count do not slow each other down.
//
// A thread may be moved to another CPU at any time: what it counts must be atomic all the same.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          Here: a few nanoseconds.

#ifndef BOBBIN_BENCH_COMPARE_PER_CPU_H_
#define BOBBIN_BENCH_COMPARE_PER_CPU_H_

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bobbin::compare {

template <typename T>
class PerCpu {
 public:
  PerCpu() : parts_(PartCount()) {}

  // The part of the CPU that runs this line; some share one where there are very many.
  T& Here() {
    return parts_[static_cast<size_t>(std::max(0, sched_getcpu())) % parts_.size()].value;
  }

  // The sum of `of(part)` over all parts.
  template <typename F>
  auto Sum(F&& of) const {
    decltype(of(parts_.front().value)) sum{};
    for (const Part& part : parts_) sum += of(part.value);
    return sum;
  }

 private:
  static constexpr size_t kPartsMax = 64;

  struct alignas(64) Part {
    T value{};
  };

  static size_t PartCount() {
    return std::clamp<size_t>(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)), 1, kPartsMax);
  }

  std::vector<Part> parts_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_PER_CPU_H_
