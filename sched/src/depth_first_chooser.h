// SPDX-License-Identifier: Apache-2.0
//
// DepthFirstChooser: one run after the other, every choice there is.
//
// A run follows the choices of the one before it, up to the last at which something else could be
// tried, tries that, and goes on with the first alternative everywhere. The first alternative is
// the ordinary course: the running thread goes on, a load answers with the newest store. Every
// other one costs a unit of the budget of its kind, also who follows a thread that spins, so the
// tree is finite (after M. Musuvathi and S. Qadeer, "Iterative context bounding for systematic
// testing of multithreaded programs", PLDI 2007). Who follows a thread that has to wait costs
// nothing.
//
//   Called from   the simulator, and between two runs.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_DEPTH_FIRST_CHOOSER_H_
#define BOBBIN_SCHED_SRC_DEPTH_FIRST_CHOOSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <bobbin/core/internal/simulator.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::internal {

class DepthFirstChooser final : public Chooser {
 public:
  explicit DepthFirstChooser(const testing::ExplorationOptions& options);

  // Before each run.
  void BeginRun();
  // After it: whether there is another one to make.
  bool Advance();
  // Only what is between the two is varied.
  void Open() noexcept { is_open_ = true; }
  void Close() noexcept { is_open_ = false; }

  size_t ChooseThread(std::span<const int> threads, Switch kind) noexcept override;
  void HasYielded(int thread) noexcept override;
  size_t ChooseRead(size_t count) noexcept override;
  bool ChooseJump() noexcept override;
  bool ChooseFault(std::string_view point) noexcept override;

 private:
  enum Budget : size_t { kPreemptions, kOldReads, kDelays, kFree, kBudgets };
  struct Choice {
    size_t count;
    size_t taken;
    Budget budget;
  };

  size_t Choose(size_t count, Budget budget) noexcept;

  const std::array<int, kBudgets> budgets_;
  std::array<int, kBudgets> left_{};
  std::vector<Choice> choices_;  // Of this run; beyond next_, of the one before it.
  size_t next_ = 0;
  bool is_open_ = false;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DEPTH_FIRST_CHOOSER_H_
