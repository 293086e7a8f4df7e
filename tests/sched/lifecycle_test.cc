// SPDX-License-Identifier: Apache-2.0

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/kept_lines.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/send_signal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AwaitTrue;
using test::KeptLines;
using test::Log;
using test::OsThreads;
using test::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

// A hook that logs its name.
StopHook Logged(Runtime& runtime, Log<std::string>& log, StopPhase phase, std::string name) {
  return runtime.lifecycle().OnStop({.phase = phase, .name = name}, [&log, name] {
    log.Add(name);
    return absl::OkStatus();
  });
}

TEST(LifecycleTest, PhasesComeInTheirOrder) {
  Log<std::string> log;
  Runtime runtime({.carriers = 2});
  const StopHook resource_1 = Logged(runtime, log, StopPhase::kResources, "file");
  const StopHook resource_2 = Logged(runtime, log, StopPhase::kResources, "pool");
  const StopHook executors = Logged(runtime, log, StopPhase::kExecutors, "queue");
  const StopHook servers = Logged(runtime, log, StopPhase::kServers, "server");
  const StopHook scheduler = Logged(runtime, log, StopPhase::kScheduler, "jobs");
  const StopHook announce = Logged(runtime, log, StopPhase::kAnnounce, "health");
  EXPECT_FALSE(runtime.lifecycle().stopping().IsSet());
  EXPECT_OK(runtime.lifecycle().Stop());
  EXPECT_TRUE(runtime.lifecycle().stopping().IsSet());
  EXPECT_THAT(log.Take(), ElementsAre("health", "jobs", "server", "queue"));
  EXPECT_OK(runtime.Shutdown());
  EXPECT_THAT(log.Take(), ElementsAre("pool", "file"));
}

TEST(LifecycleTest, TheRuntimesEndGoesThroughThePhases) {
  Log<std::string> log;
  std::optional<StopHook> outlives;
  {
    Runtime runtime({.carriers = 1});
    outlives = Logged(runtime, log, StopPhase::kServers, "server");
  }
  EXPECT_THAT(log.Take(), ElementsAre("server"));
  outlives.reset();
}

TEST(LifecycleTest, HooksOfAPhaseRunAtTheSameTime) {
  Runtime runtime({.carriers = 1});
  Event first;
  Event second;
  const StopHook a = runtime.lifecycle().OnStop({}, [&] {
    first.Set();
    return second.Wait();
  });
  const StopHook b = runtime.lifecycle().OnStop({}, [&] {
    second.Set();
    return first.Wait();
  });
  EXPECT_OK(runtime.lifecycle().Stop());
}

TEST(LifecycleTest, EachPhaseThatHasSomethingToDoIsLogged) {
  const KeptLines lines;
  {
    Runtime runtime({.carriers = 2});
    std::vector<StopHook> hooks;
    for (const StopPhase phase : {StopPhase::kAnnounce, StopPhase::kScheduler, StopPhase::kServers,
                                  StopPhase::kExecutors, StopPhase::kResources}) {
      hooks.push_back(
          runtime.lifecycle().OnStop({.phase = phase}, [] { return absl::OkStatus(); }));
    }
    for (int i = 0; i < 3; ++i) {
      runtime.Spawn({}, [] { SleepFor(hours(1)).IgnoreError(); }).Detach();
    }
    EXPECT_OK(runtime.lifecycle().Stop());
    EXPECT_OK(runtime.Shutdown());
  }
  for (const std::string_view line :
       {"stop: asked for; 25.0 s for all of it", "stop: phase 1, announce: 1 of 1 ended",
        "stop: phase 2, scheduler: 1 of 1 ended", "stop: phase 3, servers: 1 of 1 ended",
        "stop: phase 4, executors: 1 of 1 ended", "stop: phase 6, resources: 1 closed"}) {
    EXPECT_EQ(lines.With(line).size(), 1U) << line;
  }
  // The hooks' own threads may still be on their way out.
  const std::vector<LogRecord> threads = lines.With("stop: phase 5, virtual threads: ");
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_THAT(threads[0].text, MatchesRegex(".*: (3 of 3|4 of 4|5 of 5|6 of 6|7 of 7) ended, .*"));
}

TEST(LifecycleTest, AHookThatIsWithdrawnIsNotCalled) {
  Log<std::string> log;
  Runtime runtime({.carriers = 1});
  { const StopHook hook = Logged(runtime, log, StopPhase::kServers, "gone"); }
  StopHook moved = Logged(runtime, log, StopPhase::kServers, "replaced");
  moved = Logged(runtime, log, StopPhase::kServers, "there");
  EXPECT_OK(runtime.lifecycle().Stop());
  EXPECT_THAT(log.Take(), ElementsAre("there"));
}

TEST(LifecycleTest, AHookThatIsDetachedIsCalledAndGoesWithTheRuntime) {
  const auto called = std::make_shared<std::atomic<int>>(0);
  {
    Runtime runtime({.carriers = 1});
    for (const StopPhase phase : {StopPhase::kServers, StopPhase::kResources}) {
      runtime.lifecycle()
          .OnStop({.phase = phase, .name = "kept"},
                  [called] {
                    ++*called;
                    return absl::OkStatus();
                  })
          .Detach();
    }
    EXPECT_OK(runtime.Shutdown());
    EXPECT_EQ(*called, 2);
  }
  EXPECT_EQ(called.use_count(), 1);
}

TEST(LifecycleTest, WithdrawingAHookThatRunsWaitsForIt) {
  Runtime runtime({.carriers = 2});
  Event has_begun;
  Event may_end;
  std::atomic<bool> has_ended = false;
  std::optional<StopHook> hook = runtime.lifecycle().OnStop({.name = "slow"}, [&] {
    has_begun.Set();
    absl::Status waited = may_end.Wait();
    has_ended = true;
    return waited;
  });
  runtime.lifecycle().RequestStop();
  EXPECT_OK(has_begun.Wait());
  OsThreads helper;
  helper.Start([&] {
    Yield();
    may_end.Set();
  });
  hook.reset();
  EXPECT_TRUE(has_ended);
}

TEST(LifecycleTest, AHookThatDoesNotEndIsNamedAndTheOthersGoOn) {
  Event may_end;
  Log<std::string> log;
  Runtime runtime({.carriers = 1, .shutdown_budget = milliseconds(100)});
  std::optional<StopHook> stuck = runtime.lifecycle().OnStop({.name = "rock"}, [&] {
    const CancelShield deaf;  // And blind to the phase's deadline.
    return may_end.Wait();
  });
  const StopHook later = Logged(runtime, log, StopPhase::kExecutors, "later");
  const absl::Status stopped = runtime.lifecycle().Stop();
  EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(std::string(MessageOf(stopped)), HasSubstr("\"rock\""));
  EXPECT_THAT(log.Take(), ElementsAre("later"));
  may_end.Set();
  stuck.reset();
  EXPECT_EQ(runtime.Shutdown(), stopped);
}

TEST(LifecycleTest, AHookHasItsPhasesDeadlineAndIsNotCancelled) {
  Runtime runtime({.carriers = 1, .shutdown_budget = milliseconds(100)});
  const StopHook hook = runtime.lifecycle().OnStop({.name = "waits"}, [] {
    Event never;
    return never.Wait();
  });
  EXPECT_THAT(runtime.lifecycle().Stop(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(LifecycleTest, AHooksFailureIsReturned) {
  Runtime runtime({.carriers = 1});
  const StopHook fails =
      runtime.lifecycle().OnStop({.name = "fails"}, [] { return absl::DataLossError("torn"); });
  const absl::Status stopped = runtime.lifecycle().Stop();
  EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(runtime.lifecycle().Stop(), stopped);

  Runtime other({.carriers = 1});
  const StopHook throws = other.lifecycle().OnStop(
      {.name = "throws"}, []() -> absl::Status { throw std::runtime_error("bad"); });
  EXPECT_THAT(std::string(MessageOf(other.lifecycle().Stop())),
              AllOf(HasSubstr("\"throws\""), HasSubstr("bad")));
}

TEST(LifecycleTest, ManyMayAskAndAllWaitForTheOne) {
  for (int round = 0; round < test::Rounds(30); ++round) {
    Runtime runtime({.carriers = 2});
    std::atomic<int> calls = 0;
    const StopHook hook = runtime.lifecycle().OnStop({.name = "once"}, [&] {
      ++calls;
      return absl::OkStatus();
    });
    Event never;
    VirtualThread cancelled = runtime.Spawn([&] { return never.Wait(); });
    VirtualThread stops = runtime.Spawn([&runtime] { return runtime.lifecycle().Stop(); });
    OsThreads others;
    for (int i = 0; i < 3; ++i) {
      others.Start([&] {
        EXPECT_OK(runtime.lifecycle().Stop());
        EXPECT_EQ(calls, 1);
      });
    }
    others.Join();
    EXPECT_OK(stops.Join());
    EXPECT_THAT(cancelled.Join(), StatusIs(absl::StatusCode::kCancelled));
    EXPECT_OK(runtime.Shutdown());
  }
}

TEST(LifecycleTest, TasksMayStopWhatTheyRunOn) {
  for (const ThreadKind kind : {ThreadKind::kPlatform, ThreadKind::kVirtual}) {
    Runtime runtime({.carriers = 2});
    Executor& executor = **runtime.executors().Find("e", kind);
    std::atomic<int> begun = 0;
    const auto stop = [&] {
      ++begun;
      AwaitTrue([&] { return begun == 2; });
      return runtime.lifecycle().Stop();
    };
    Future<void> one = Async(executor, stop);
    Future<void> two = Async(executor, stop);
    EXPECT_OK(one.Get());
    EXPECT_OK(two.Get());
    EXPECT_OK(runtime.Shutdown());
    EXPECT_EQ(executor.Statistics().completed, 2U);
  }
}

TEST(LifecycleTest, ATaskThatDoesNotEndIsNamed) {
  for (const ThreadKind kind : {ThreadKind::kPlatform, ThreadKind::kVirtual}) {
    Event may_end;
    Runtime runtime({.carriers = 2, .shutdown_budget = milliseconds(100)});
    Executor& executor = **runtime.executors().Find("e", kind);
    Event has_begun;
    Future<void> stuck = Async(executor, {.name = "rock"}, [&] {
      const CancelShield deaf;
      has_begun.Set();
      return may_end.Wait();
    });
    EXPECT_OK(has_begun.Wait());
    const absl::Status stopped = runtime.lifecycle().Stop();
    EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(std::string(MessageOf(stopped)), HasSubstr("\"rock\""));
    EXPECT_THAT(stuck.Get(), StatusIs(absl::StatusCode::kAborted));
    may_end.Set();
    EXPECT_EQ(runtime.Shutdown(), stopped);
  }
}

// --- Whole programs, stopped by signals. Each in a process of its own.

int RunUntilSignal(int storms) {
  const int code = Run(
      [storms]() -> absl::Status {
        CurrentLifecycle().StopOnSignals();
        auto calls = std::make_shared<std::atomic<int>>(0);
        const StopHook hook = CurrentLifecycle().OnStop({.name = "server"}, [calls] {
          ++*calls;
          return SleepFor(milliseconds(5));
        });
        std::vector<Future<void>> load;
        for (int i = 0; i < 20; ++i) {
          load.push_back(Async(i % 2 == 0 ? "default" : "default-virtual",
                               [] { return SleepFor(milliseconds(2)); }));
        }
        for (int i = 0; i < storms; ++i) test::SendSignal(i % 2 == 0 ? SIGTERM : SIGINT);
        const absl::Status ended = SleepFor(hours(1));
        // Nothing is lost: what had begun has ended.
        const CancelShield shield;
        for (Future<void>& future : load) BOBBIN_RETURN_IF_ERROR(future.Get());
        if (*calls != 1) return absl::InternalError("the hook was not called once");
        return ended;
      },
      {.carriers = 2});
  return code;
}

TEST(LifecycleDeathTest, ASignalIsAnOrderlyStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(RunUntilSignal(1)), testing::ExitedWithCode(0),
              "stop: SIGTERM; 25.0 s for all of it(.|\n)*phase 3, servers: 1 of 1 ended");
}

TEST(LifecycleDeathTest, AThousandSignalsAreOneOrderlyStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(RunUntilSignal(1000)), testing::ExitedWithCode(0),
              "stop: SIG(TERM|INT); 25.0 s for all of it(.|\n)*phase 3, servers: 1 of 1 ended");
}

// Has the runtime stop, from wherever it is called, and does not end.
void StopAndStay(Lifecycle& life) {
  const CancelShield deaf;
  life.RequestStop();
  Event never;
  never.Wait().IgnoreError();
}

int RunStubborn(absl::AnyInvocable<void(Lifecycle&)> main) {
  return Run(
      [&] {
        main(CurrentLifecycle());
        return absl::OkStatus();
      },
      {.carriers = 2, .shutdown_budget = milliseconds(100)});
}

// What does not end is left behind, and the process ends all the same.
TEST(LifecycleDeathTest, AProgramThatDoesNotEndIsEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(RunStubborn(StopAndStay)), testing::ExitedWithCode(1),
              "1 virtual threads did not end: \"main\"");
  EXPECT_EXIT(std::_Exit(RunStubborn([](Lifecycle& life) {
                Spawn({.name = "rock"}, [&life] { StopAndStay(life); }).Detach();
              })),
              testing::ExitedWithCode(1), "1 virtual threads did not end: \"rock\"");
  EXPECT_EXIT(std::_Exit(RunStubborn([](Lifecycle& life) {
                RunBlocking([&life] { StopAndStay(life); }).IgnoreError();
              })),
              testing::ExitedWithCode(1), "1 virtual threads did not end: \"main\"");
}

// The main function has ended before the stop, and what it has left behind ends with it.
int RunPastMain() {
  return Run(
      [] {
        CurrentLifecycle().StopOnSignals();
        Spawn({.name = "rest"}, [] {
          SleepFor(milliseconds(20)).IgnoreError();  // Main may have ended, or not.
          test::SendSignal(SIGTERM);
          SleepFor(hours(1)).IgnoreError();
        }).Detach();
        return absl::OkStatus();
      },
      {.carriers = 2});
}

TEST(LifecycleDeathTest, AProgramWhoseMainHasEndedStopsOnASignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(RunPastMain()), testing::ExitedWithCode(0), "stop: SIGTERM");
}

}  // namespace
}  // namespace bobbin
