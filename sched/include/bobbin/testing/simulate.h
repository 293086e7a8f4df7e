// SPDX-License-Identifier: Apache-2.0
//
// Simulate and Explore: run code many times, each time in another order of everything that could
// happen at once.
//
// One real OS thread plays all others: carriers, platform threads, foreign threads. Before each
// access of a word that threads share, each wait for the kernel and each look at the clock it
// chooses who goes on; loads may answer with what was there before, where the memory model of C++
// allows it. The clock is the simulation's own, and jumps over what would be waiting. So a run is
// fast, shows what a real machine shows once a month, and is repeated by its seed.
//
// Simulate chooses at random, from a seed for each run. Explore goes through every choice there is,
// with a bounded number of surprises: for small cases, it is a proof within that bound.
//
// A run fails by a failed check, a deadlock, no end in sight, an access to a word after its life,
// a data race on a testing::Plain, a virtual thread or a timer that is left over, a body that
// returns an error, and by `has_failed`. The failure is printed, with the seed and the last steps;
// BOBBIN_SIM_SEED=<seed> in the environment has every Simulate do that run and no other, and
// BOBBIN_SIM_SEEDS=<count> changes how many there are.
//
// Link bobbin::testing instead of bobbin::core and bobbin::sched: it is the same code, compiled for
// a simulation. Nothing else of the program's own may block or race: its std::mutex and its
// std::thread are not simulated, nor is I/O.
//
//   Called from   an OS thread outside a simulation.
//   Errors        The report says what has failed; nothing aborts. After a failure the threads of
//                 that run and what they hold are abandoned, and what is simulated afterwards in
//                 the same process may take another course: repeat a seed in a new process.
//   Cost          some 0.1 us a step; a run with a runtime has some thousands.
//
// Example:
//   const auto report = bobbin::testing::Simulate({.seeds = 500, .carriers = 2}, [] {
//     Ledger ledger;
//     bobbin::TaskGroup group;
//     for (int i = 0; i < 3; ++i) group.Spawn([&] { ledger.Credit(7); });
//     BOBBIN_CHECK(group.Wait().ok() && ledger.Sum() == 21, "a credit got lost");
//   });
//   EXPECT_TRUE(report.ok()) << report.failure;

#ifndef BOBBIN_TESTING_SIMULATE_H_
#define BOBBIN_TESTING_SIMULATE_H_

#if !defined(BOBBIN_SIMULATED)
#error "link bobbin::testing instead of bobbin::core and bobbin::sched"
#endif

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/fault.h>

namespace bobbin::testing {

// Something that goes wrong now and then: one of bobbin::internal::faults, or of the code's own.
struct Fault {
  std::string_view point;
  double probability = 0.01;
};

struct SimulationOptions {
  int seeds = 1000;
  uint64_t first_seed = 1;
  // Of the runtime whose first virtual thread runs the body. 0: there is no runtime, and the body
  // runs on a foreign thread.
  int carriers = 2;
  // A run that takes more has no end.
  uint64_t steps_max = 1'000'000;
  std::vector<Fault> faults = {};
  // Whether somebody may be slow enough for a deadline that is near to pass. Off for a body that
  // reckons with quick threads.
  bool has_delays = true;
  // Whether loads may answer with what was there before. Off for a body that orders its threads by
  // something that the simulation does not see.
  bool has_old_reads = true;
  // Asked after each run whether something else has failed: ::testing::Test::HasFailure, say.
  bool (*has_failed)() = nullptr;
  // Whether failures are printed to standard error.
  bool is_quiet = false;
};

struct ExplorationOptions {
  int carriers = 0;  // As above; every carrier multiplies the number of runs.
  // How often in one run a thread that could go on is made to wait for another one.
  int preemptions_max = 2;
  // How often in one run a load answers with an older store.
  int old_reads_max = 1;
  // How often in one run somebody is slow enough for a deadline to pass.
  int delays_max = 0;
  uint64_t runs_max = 1'000'000;
  uint64_t steps_max = 100'000;
  bool (*has_failed)() = nullptr;
  bool is_quiet = false;
};

struct [[nodiscard]] SimulationReport {
  bool ok() const { return failure.empty(); }

  std::string failure;  // Empty: every run was good.
  uint64_t seed = 0;    // Of the run that failed; for Explore, its number.
  uint64_t runs = 0;
  uint64_t steps = 0;        // Of all runs.
  bool is_complete = false;  // Explore: there was nothing left to try.
};

// The seed, or the number, of the run that the caller is in: for random numbers of its own.
uint64_t PresentRun();

namespace internal {
using Body = absl::AnyInvocable<absl::Status()>;
SimulationReport SimulateBody(const SimulationOptions& options, Body body);
SimulationReport ExploreBody(const ExplorationOptions& options, Body body);

template <typename F>
Body BodyOf(F body) {
  return [body = std::move(body)]() mutable -> absl::Status {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      body();
      return absl::OkStatus();
    } else {
      return body();
    }
  };
}
}  // namespace internal

// Runs `body`, which returns nothing or an absl::Status, once for each seed, until one fails.
template <typename F>
SimulationReport Simulate(const SimulationOptions& options, F body) {
  return internal::SimulateBody(options, internal::BodyOf(std::move(body)));
}

// Runs `body` once for each way it can go, until one fails. It must do the same in every run but
// for what the simulation chooses.
template <typename F>
SimulationReport Explore(const ExplorationOptions& options, F body) {
  return internal::ExploreBody(options, internal::BodyOf(std::move(body)));
}

}  // namespace bobbin::testing

#endif  // BOBBIN_TESTING_SIMULATE_H_
