// SPDX-License-Identifier: Apache-2.0
//
// Executors, in a simulation: who begins a task, withdraws it, refuses it, ends it and shuts its
// executor down, at the same time. The small cases in all their orders, up to a bound; everything
// at once in many. Some of the mutants of this folder are caught by these.

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/testing/os_thread.h>
#include <bobbin/testing/plain.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void ExpectExplored(const ExplorationOptions& options, absl::AnyInvocable<void()> body) {
  const SimulationReport report = Explore(options, std::move(body));
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.is_complete) << report.runs << " runs were not enough";
}

void ExpectSimulated(const SimulationOptions& options, absl::AnyInvocable<void()> body) {
  EXPECT_TRUE(Simulate(options, std::move(body)).ok());
}

// Each task is counted once, and none is left.
void CheckBalance(const Executor& executor) {
  const ExecutorStatistics is = executor.Statistics();
  BOBBIN_CHECK(is.queued + is.delayed + is.active == 0, "something is left");
  BOBBIN_CHECK(is.submitted == is.completed + is.failed + is.rejected + is.dropped + is.abandoned,
               "a task is counted twice, or not at all");
}

Executor& VirtualNamed(std::string_view name) {
  absl::StatusOr<Executor*> found = CurrentExecutors().Find(name, ThreadKind::kVirtual);
  BOBBIN_CHECK(found.ok(), "nobody else names it");
  return **found;
}

// A runtime for a run without one, in which nothing looks on by itself.
RuntimeOptions WithCarriers(int carriers) {
  RuntimeOptions options{.carriers = carriers};
  options.watchdog.limit = std::chrono::nanoseconds(0);
  options.deadlock.action = OnDeadlock::kIgnore;
  return options;
}

// Runs `body(executor)` on a virtual thread of a runtime, whose executor has a single place.
template <typename Body>
void WithSinglePlace(int carriers, Body body) {
  RuntimeOptions options = WithCarriers(carriers);
  options.executors.named.emplace("single",
                                  ExecutorOptions{.kind = ThreadKind::kVirtual, .concurrency = 1});
  Runtime runtime(std::move(options));
  const absl::Status ended = runtime
                                 .Spawn([&body] {
                                   Executor& single = VirtualNamed("single");
                                   body(single);
                                   BOBBIN_CHECK(CurrentExecutors().AwaitIdle().ok(), "not stopped");
                                   CheckBalance(single);
                                 })
                                 .Join();
  BOBBIN_CHECK(ended.ok() && runtime.Shutdown().ok(), "all bodies end");
}

void AwaitIdle() { BOBBIN_CHECK(CurrentExecutors().AwaitIdle().ok(), "nobody stops the wait"); }

// --- Small cases: every order.

TEST(ExecutorInterleavingTest, ATaskBeginsOrIsWithdrawn) {
  ExpectExplored({.carriers = 1, .preemptions_max = 1}, [] {
    Executor& executor = VirtualNamed("v");
    Plain<int> runs(0);
    Future<void> future = Async(executor, [&runs] { runs.Write(runs.Read() + 1); });
    bool is_withdrawn = false;
    OsThread canceller([&] { is_withdrawn = future.TryCancel(); });
    AwaitIdle();
    canceller.Join();
    BOBBIN_CHECK(absl::IsCancelled(future.Get()) == is_withdrawn, "its future says which");
    BOBBIN_CHECK(runs.Read() == (is_withdrawn ? 0 : 1), "it runs once, or not at all");
    CheckBalance(executor);
  });
}

// On a carrier that has its share of the executor for itself.
TEST(ExecutorInterleavingTest, AWarmCarriersTaskBeginsOrIsWithdrawn) {
  ExpectExplored({.carriers = 1, .preemptions_max = 1}, [] {
    Executor& executor = VirtualNamed("v");
    for (int i = 0; i < 2; ++i) BOBBIN_CHECK(Async(executor, [] {}).Get().ok(), "it has room");
    Plain<int> runs(0);
    Future<void> future = Async(executor, [&runs] { runs.Write(runs.Read() + 1); });
    bool is_withdrawn = false;
    OsThread canceller([&] { is_withdrawn = future.TryCancel(); });
    // No look at the executor, which would take its share away from the carrier.
    BOBBIN_CHECK(future.Wait().ok(), "nobody stops the wait");
    canceller.Join();
    BOBBIN_CHECK(absl::IsCancelled(future.Get()) == is_withdrawn, "its future says which");
    BOBBIN_CHECK(runs.Read() == (is_withdrawn ? 0 : 1), "it runs once, or not at all");
    CheckBalance(executor);
  });
}

TEST(ExecutorInterleavingTest, APlaceIsPassedOn) {
  ExpectExplored({.preemptions_max = 1, .old_reads_max = 0}, [] {
    WithSinglePlace(1, [](Executor& single) {
      Future<int> other;
      OsThread submitter([&] { other = Async(single, [] { return 1; }); });
      Future<int> own = Async(single, [] { return 2; });
      BOBBIN_CHECK(*own.Get() == 2, "its body's");
      submitter.Join();
      BOBBIN_CHECK(*other.Get() == 1, "its body's");
    });
  });
}

TEST(ExecutorInterleavingTest, ATaskIsSubmittedWhileItsExecutorIsShutDown) {
  ExpectExplored({.carriers = 1, .preemptions_max = 1}, [] {
    Executor& executor = VirtualNamed("v");
    BOBBIN_CHECK(Async(executor, [] { return 1; }).Get().ok(), "it is open");
    Future<int> future;
    OsThread submitter([&] { future = Async(executor, [] { return 1; }); });
    BOBBIN_CHECK(CurrentExecutors().Shutdown(std::chrono::seconds(1)).ok(), "nobody keeps it up");
    submitter.Join();
    const absl::StatusOr<int> result = future.Get();
    BOBBIN_CHECK(result.ok() || absl::IsUnavailable(result.status()), "it has run, or was refused");
    CheckBalance(executor);
  });
}

TEST(ExecutorInterleavingTest, ADelayedTaskIsDueWhileItIsWithdrawn) {
  ExpectExplored({.carriers = 1, .preemptions_max = 1, .old_reads_max = 0, .delays_max = 1}, [] {
    Executor& executor = VirtualNamed("v");
    Future<int> future = Async(executor, {.delay = milliseconds(1)}, [] { return 1; });
    bool is_withdrawn = false;
    OsThread canceller([&] { is_withdrawn = future.TryCancel(); });
    AwaitIdle();
    canceller.Join();
    BOBBIN_CHECK(future.Get().ok() != is_withdrawn, "its future says which");
    CheckBalance(executor);
  });
}

// The result has as many owners as it should, whoever goes first.
TEST(ExecutorInterleavingTest, AFutureIsDroppedWhileItsTaskEnds) {
  ExpectExplored({.carriers = 1, .preemptions_max = 2}, [] {
    Executor& executor = VirtualNamed("v");
    const auto value = std::make_shared<int>(1);
    Future<std::shared_ptr<int>> future = Async(executor, [value] { return value; });
    OsThread dropper([&future] { future = {}; });
    AwaitIdle();
    dropper.Join();
    while (value.use_count() != 1) Yield();  // The last line of the task's thread.
    CheckBalance(executor);
  });
}

// Also where the future of the function is dropped while the task ends.
TEST(ExecutorInterleavingTest, AFailureThatAFunctionHearsOfIsNotUncaught) {
  ExpectExplored({.carriers = 1, .preemptions_max = 2, .old_reads_max = 0}, [] {
    Executor& executor = VirtualNamed("v");
    Future<void> future = Async(executor, [] { return absl::DataLossError("broken"); });
    OsThread reader(
        [&future] { static_cast<void>(std::move(future).Then([](const absl::Status&) {})); });
    AwaitIdle();
    reader.Join();
    BOBBIN_CHECK(executor.Statistics().uncaught == 0, "the function has heard of it");
  });
}

// --- Larger cases: many orders.

TEST(ExecutorInterleavingTest, ATaskEndsWhileItIsAbandoned) {
  ExpectSimulated({.seeds = 1500, .carriers = 1}, [] {
    Executor& executor = VirtualNamed("v");
    Event has_begun;
    Future<void> future = Async(executor, [&has_begun] {
      const CancelShield deaf;
      has_begun.Set();
      return SleepFor(milliseconds(1));
    });
    BOBBIN_CHECK(has_begun.Wait().ok(), "nobody stops the wait");
    absl::Status ended;
    OsThread stopper(
        [&ended, &executors = CurrentExecutors()] { ended = executors.Shutdown(milliseconds(1)); });
    const absl::Status result = future.Get();
    AwaitIdle();
    stopper.Join();
    BOBBIN_CHECK(ended.ok() ? result.ok() : absl::IsAborted(result), "both say the same");
    CheckBalance(executor);
  });
}

TEST(ExecutorInterleavingTest, ThePlaceOfOneCarrierIsTheOthersToo) {
  ExpectSimulated({.seeds = 1500, .carriers = 0}, [] {
    WithSinglePlace(1 + static_cast<int>(PresentRun() % 3), [](Executor& single) {
      Plain<int> inside(0);  // One at a time, and each after the other.
      std::vector<VirtualThread> submitters;
      for (int i = 0; i < 3; ++i) {
        submitters.push_back(Spawn({.placement = Placement::kSpread}, [&] {
          for (int turn = 0; turn < 2; ++turn) {
            const auto enter = [&inside] { inside.Write(inside.Read() + 1); };
            BOBBIN_CHECK(Async(single, enter).Get().ok(), "its body's");
          }
        }));
      }
      for (VirtualThread& submitter : submitters) BOBBIN_CHECK(submitter.Join().ok(), "it ends");
      BOBBIN_CHECK(inside.Read() == 6, "each has run");
    });
  });
}

// Tasks that end, fail, wait, are delayed, tried again and withdrawn, by two submitters, while the
// executors are shut down: each future has a result, and each task is counted once.
void ShutDownAtRandom() {
  std::mt19937_64 chance(PresentRun());
  RuntimeOptions options = WithCarriers(1 + static_cast<int>(chance() % 2));
  for (const ThreadKind kind : {ThreadKind::kPlatform, ThreadKind::kVirtual}) {
    options.executors.named.emplace(
        ThreadKindName(kind), ExecutorOptions{.kind = kind,
                                              .threads = 1 + chance() % 2,
                                              .concurrency = 1 + chance() % 2,
                                              .queue_max = chance() % 3,
                                              .rejection = static_cast<Rejection>(chance() % 4)});
  }
  Event never;  // Outlives the bodies that wait for it.
  Runtime runtime(std::move(options));
  Executor* const executors[] = {*runtime.executors().Find("platform"),
                                 *runtime.executors().Find("virtual")};
  const auto submit = [&](uint64_t seed, std::vector<Future<void>>& futures) {
    std::mt19937_64 own(seed);
    for (int i = 0; i < 4; ++i) {
      Executor& executor = *executors[own() % 2];
      const uint64_t what = own() % 6;
      TaskOptions task;
      if (what == 0) task.delay = microseconds(own() % 200);
      if (what == 1) task.retry = {.attempts_max = 2, .backoff = microseconds(50)};
      futures.push_back(Async(executor, task, [&never, what]() -> absl::Status {
        if (what == 1) return absl::UnavailableError("flaky");
        if (what == 2) Yield();
        if (what == 3) return SleepFor(microseconds(100));
        if (what == 4) return never.WaitUntil(Deadline::After(milliseconds(1)));
        return absl::OkStatus();
      }));
      if (what == 5) static_cast<void>(futures.back().TryCancel());
    }
  };
  std::vector<Future<void>> first;
  std::vector<Future<void>> second;
  const uint64_t seed = chance();
  {
    OsThread one([&] { submit(seed, first); });
    OsThread two([&] { submit(seed + 1, second); });
    const absl::Status ended = runtime.executors().Shutdown(microseconds(chance() % 2000));
    BOBBIN_CHECK(ended.ok() || absl::IsDeadlineExceeded(ended), "one of the two");
  }
  for (std::vector<Future<void>>* const futures : {&first, &second}) {
    for (Future<void>& future : *futures) static_cast<void>(future.Get());
  }
  uint64_t submitted = 0;
  for (const Executor* const executor : executors) {
    CheckBalance(*executor);
    submitted += executor->Statistics().submitted;
  }
  BOBBIN_CHECK(submitted == first.size() + second.size(), "each is counted");
  BOBBIN_CHECK(runtime.Shutdown().ok(), "all bodies end");
}

TEST(ExecutorInterleavingTest, NothingIsLostAndNothingCountedTwice) {
  ExpectSimulated({.seeds = 1000, .carriers = 0}, ShutDownAtRandom);
}

}  // namespace
}  // namespace bobbin::testing
