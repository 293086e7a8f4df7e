// SPDX-License-Identifier: Apache-2.0

#include "sched/src/depth_first_chooser.h"

#include <limits>

#include <bobbin/core/check.h>

namespace bobbin::internal {

DepthFirstChooser::DepthFirstChooser(const testing::ExplorationOptions& options)
    : budgets_{options.preemptions_max, options.old_reads_max, options.delays_max,
               std::numeric_limits<int>::max()} {}

void DepthFirstChooser::BeginRun() {
  next_ = 0;
  left_ = budgets_;
  is_open_ = false;
}

bool DepthFirstChooser::Advance() {
  choices_.resize(next_);
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) {
    choices_.pop_back();
  }
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

size_t DepthFirstChooser::Choose(size_t count, Budget budget) noexcept {
  if (!is_open_ || left_[budget] == 0) return 0;
  if (next_ == choices_.size()) choices_.push_back({count, 0, budget});
  const Choice& choice = choices_[next_++];
  BOBBIN_CHECK(choice.count == count && choice.budget == budget,
               "what is explored does not do the same in every run");
  if (choice.taken != 0 && budget != kFree) --left_[budget];
  return choice.taken;
}

size_t DepthFirstChooser::ChooseThread(std::span<const int> threads, Switch kind) noexcept {
  return Choose(threads.size(), kind == Switch::kWaits ? kFree : kPreemptions);
}

void DepthFirstChooser::HasYielded(int) noexcept {}

size_t DepthFirstChooser::ChooseRead(size_t count) noexcept { return Choose(count, kOldReads); }

bool DepthFirstChooser::ChooseJump() noexcept { return Choose(2, kDelays) == 1; }

bool DepthFirstChooser::ChooseFault(std::string_view) noexcept { return false; }

}  // namespace bobbin::internal
