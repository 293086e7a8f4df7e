// SPDX-License-Identifier: Apache-2.0
//
// Wait walk: makes each wait of a table in docs/waits.md happen, and compares what it answers with
// what the table says.
//
// A test says, for each row, how to set the stage: a wait that has to wait, and what lets it
// through. The walk then stops the waiting thread in every way there is, and looks what it answers;
// after that it lets the wait through, to see that nothing was lost.
//
//   Called from   foreign threads next to a runtime.
//
// Example:
//   const WaitStages kStages = {{"Event::Wait", [](Runtime&) -> WaitStage {
//     auto event = std::make_shared<Event>();
//     return {.wait = [event] { return event->Wait(); }, .satisfy = [event] { event->Set(); }};
//   }}};
//   BOBBIN_FOREIGN_TEST(WaitsTest, EachWaitAnswersAsTheTableSays) {
//     WalkWaits("core", kStages, runtime());
//   }

#ifndef BOBBIN_TESTS_SUPPORT_WAIT_WALK_H_
#define BOBBIN_TESTS_SUPPORT_WAIT_WALK_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/sched/runtime.h>

namespace bobbin::test {

// Which kinds of threads can do the wait.
enum class Waiters { kAll, kOfRuntime, kVirtual, kOsThreads };
// Whether a thread that can be seen to wait was meant: a system call that blocks cannot be seen.
enum class Sight { kClear, kBlurred };
// Whether letting the wait through takes a second or so: then that is done less often.
enum class Pace { kFast, kSlow };
// Whether who waits is parked all the time, or awake now and then to look.
enum class Rest { kUnbroken, kBroken };
// What the wait does when it is done again, after it was ended and then let through.
enum class Again { kSucceeds, kIsNotDone };
// Whether a thread that is to stop begins the wait at all, if the wait itself ignores that.
enum class Begins { kAlways, kUnlessStopped };

struct WaitStage {
  // On the thread that is to wait. What it has got it gives back.
  std::function<absl::Status()> wait;
  // Lets the wait through, now or when it begins. On the test's thread, once.
  std::function<void()> satisfy;
  // The same wait where it ends by itself soon, for those that nobody lets through: sleeps.
  std::function<absl::Status()> wait_shortly = nullptr;
  Waiters waiters = Waiters::kAll;
  Sight sight_on_os_threads = Sight::kClear;
  Again again = Again::kSucceeds;
  Begins begins = Begins::kAlways;
  Pace pace = Pace::kFast;
  Rest rest = Rest::kUnbroken;
  // Whether the wait has come to the point where it is to be stopped, if it is not enough that its
  // thread is parked.
  std::function<bool()> has_begun = nullptr;
  // Whether the thread has come to the wait. For those that it may not begin: from then on it does
  // not matter that they are let through.
  std::function<bool()> has_come = nullptr;
  // Whether nothing is left to wait for, if that is not so as soon as satisfy returns. Called while
  // nobody waits.
  std::function<bool()> is_satisfied = nullptr;
};

// By the name in the first column.
using WaitStages = std::map<std::string, std::function<WaitStage(Runtime&)>, std::less<>>;

// Walks the table below the heading `section`; its rows and `stages` must be the same set.
void WalkWaits(std::string_view section, const WaitStages& stages, Runtime& runtime);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_WAIT_WALK_H_
