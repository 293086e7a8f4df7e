// SPDX-License-Identifier: Apache-2.0
//
// RandomChooser: the choices of one seed.
//
// No single way of choosing finds everything, so the seed also chooses the way. A walk lets the
// running thread go on with some probability, from half to nearly always, and else takes any other:
// short and long stretches. Priorities let the highest run, and now and then put the running one
// below all others: a thread is held up for long, at one place (after S. Burckhardt et al., "A
// randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010). How often
// loads answer with the past and how often the clock jumps is drawn for each seed, too.
//
//   Called from   the simulator.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_RANDOM_CHOOSER_H_
#define BOBBIN_SCHED_SRC_RANDOM_CHOOSER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <bobbin/core/internal/simulator.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::internal {

class RandomChooser final : public Chooser {
 public:
  // `options` must outlive it.
  RandomChooser(uint64_t seed, const testing::SimulationOptions& options);

  size_t ChooseThread(std::span<const int> threads, Switch kind) noexcept override;
  void HasYielded(int thread) noexcept override;
  size_t ChooseRead(size_t count) noexcept override;
  bool ChooseJump() noexcept override;
  bool ChooseFault(std::string_view point) noexcept override;

 private:
  static constexpr uint64_t kCertain = 1'000'000;

  uint64_t Next() noexcept;
  uint64_t Below(uint64_t bound) noexcept { return Next() % bound; }
  // With a probability in millionths.
  bool Happens(uint64_t millionths) noexcept { return Below(kCertain) < millionths; }
  int64_t& PriorityOf(int thread) noexcept;

  const testing::SimulationOptions& options_;
  uint64_t state_;
  bool has_priorities_;
  uint64_t leaves_;   // How probably a walk takes another thread, or the running one falls back.
  uint64_t is_late_;  // How probably a load answers with an older store.
  uint64_t jumps_;    // How probably the clock does.
  std::vector<int64_t> priorities_;  // By thread; 0: not drawn yet.
  int64_t lowest_ = 0;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_RANDOM_CHOOSER_H_
