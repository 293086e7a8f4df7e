// SPDX-License-Identifier: Apache-2.0

#include "sched/src/random_chooser.h"

#include <array>

namespace bobbin::internal {

namespace {
constexpr std::array<uint64_t, 4> kWalkLeaves = {500'000, 200'000, 50'000, 10'000};
constexpr std::array<uint64_t, 4> kFallsBack = {100'000, 20'000, 5'000, 1'000};
constexpr std::array<uint64_t, 4> kIsLate = {0, 50'000, 200'000, 500'000};
constexpr std::array<uint64_t, 4> kJumps = {0, 0, 500, 5'000};
}  // namespace

RandomChooser::RandomChooser(uint64_t seed, const testing::SimulationOptions& options)
    : options_(options), state_(seed * 0x2545f4914f6cdd1d) {
  has_priorities_ = Below(2) == 0;
  leaves_ = (has_priorities_ ? kFallsBack : kWalkLeaves)[Below(4)];
  is_late_ = kIsLate[Below(4)];
  if (!options.has_old_reads) is_late_ = 0;
  jumps_ = kJumps[Below(4)];
  if (!options.has_delays) jumps_ = 0;
}

uint64_t RandomChooser::Next() noexcept {
  // SplitMix64.
  uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

int64_t& RandomChooser::PriorityOf(int thread) noexcept {
  const auto index = static_cast<size_t>(thread);
  if (index >= priorities_.size()) priorities_.resize(index + 1);
  if (priorities_[index] == 0) priorities_[index] = static_cast<int64_t>(1 + Below(1'000'000));
  return priorities_[index];
}

size_t RandomChooser::ChooseThread(std::span<const int> threads, Switch kind) noexcept {
  if (!has_priorities_) {
    if (kind != Switch::kPreempts) return Below(threads.size());
    return Happens(leaves_) ? 1 + Below(threads.size() - 1) : 0;
  }
  if (kind == Switch::kPreempts && Happens(leaves_)) PriorityOf(threads[0]) = --lowest_;
  size_t best = 0;
  for (size_t i = 1; i < threads.size(); ++i) {
    if (PriorityOf(threads[i]) > PriorityOf(threads[best])) best = i;
  }
  return best;
}

void RandomChooser::HasYielded(int thread) noexcept {
  if (has_priorities_) PriorityOf(thread) = --lowest_;
}

size_t RandomChooser::ChooseRead(size_t count) noexcept {
  return Happens(is_late_) ? 1 + Below(count - 1) : 0;
}

bool RandomChooser::ChooseJump() noexcept { return jumps_ != 0 && Happens(jumps_); }

bool RandomChooser::ChooseFault(std::string_view point) noexcept {
  for (const testing::Fault& fault : options_.faults) {
    if (fault.point == point) {
      return Happens(static_cast<uint64_t>(fault.probability * static_cast<double>(kCertain)));
    }
  }
  return false;
}

}  // namespace bobbin::internal
