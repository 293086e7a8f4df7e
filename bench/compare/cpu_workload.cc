// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstdint>

#include <bobbin/core/clock.h>
#include <bobbin/sched/sleep.h>

#include "bench/compare/random.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

constexpr size_t kBytes = size_t{16} << 10;

using Words = std::array<uint64_t, kBytes / sizeof(uint64_t)>;

// A thread that computes lets the others go on after this many operations, about every millisecond:
// virtual threads share a carrier by taking turns, and nobody interrupts them. Platform threads do
// the same, at the price of a system call every millisecond.
constexpr int kOperationsPerTurn = 256;

// FNV-1a over whole words: each step depends on the one before it.
uint64_t Hash(const Words& words, uint64_t hash) {
  for (const uint64_t word : words) {
    hash = (hash ^ word) * 0x100000001B3u;
    hash ^= hash >> 29;
  }
  return hash;
}

Words SomeWords() {
  Words words;
  Random random(0);
  for (uint64_t& word : words) word = random.Below(UINT32_MAX);
  return words;
}

// Has the compiler believe that somebody looks at `value`.
void Use(uint64_t value) { asm volatile("" : : "r"(value)); }

absl::Status HashOverAndOver(size_t unit, Measurement& measurement) {
  static const Words kData = SomeWords();
  uint64_t hash = unit;
  MonotonicTime begun = MonotonicNow();
  for (int operation = 1;; ++operation) {
    hash = Hash(kData, hash);
    Use(hash);
    const MonotonicTime now = MonotonicNow();
    if (!measurement.Record(now, now - begun)) return absl::OkStatus();
    begun = now;
    if (operation % kOperationsPerTurn != 0) continue;
    Yield();
    begun = MonotonicNow();
  }
}

absl::StatusOr<Figures> Run(const Trial& trial) { return MeasureUnits(trial, HashOverAndOver); }

}  // namespace

const Workload kCpuWorkload = {
    .name = "cpu",
    .title = "every thread hashes 16 KiB, over and over, and never waits",
    .latency = "how long a hash takes",
    .concurrency_max = 1'000'000,
    .run = Run,
};

}  // namespace bobbin::compare
