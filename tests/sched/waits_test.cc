// SPDX-License-Identifier: Apache-2.0
//
// The waits of sched, one by one, as docs/waits.md lists them.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/task_group.h>

#include "sched/src/runtime_core.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

WaitStage Sleeping(absl::Status (*wait)(std::chrono::nanoseconds)) {
  auto is_over = std::make_shared<std::atomic<bool>>(false);
  return {.wait = [wait, is_over] { return wait(hours(*is_over ? 0 : 1)); },
          .satisfy = [is_over] { *is_over = true; },
          .wait_shortly = [wait] { return wait(milliseconds(2)); }};
}

WaitStage Yielding(void (*yield)()) {
  const auto wait = [yield] {
    yield();
    return absl::OkStatus();
  };
  return {.wait = wait, .satisfy = nullptr, .wait_shortly = wait};
}

// A child that ends when the event is set, or when it is asked to.
WaitStage AwaitingChildren(Runtime&) {
  auto go = std::make_shared<Event>();
  return {.wait = [go]() -> absl::Status {
            TaskGroup group;
            if (!go->IsSet()) group.Spawn([go] { return go->Wait(); });
            absl::Status waited = group.Wait();
            EXPECT_EQ(group.live(), 0u);
            return waited;
          },
          .satisfy = [go] { go->Set(); },
          .waiters = Waiters::kOfRuntime};
}

// A group that has room for one child, and has one until the event is set. `spawn` returns what the
// group, asked in a shield, says of a second one.
WaitStage AwaitingAPlace(absl::Status (*spawn)(TaskGroup&)) {
  auto go = std::make_shared<Event>();
  return {.wait =
              [go, spawn] {
                TaskGroup group({.live_max = 1});
                if (!go->IsSet()) group.Spawn([go] { return go->Wait(); });
                return spawn(group);
              },
          .satisfy = [go] { go->Set(); },
          .waiters = Waiters::kOfRuntime};
}

absl::Status SpawnOne(TaskGroup& group) {
  bool has_run = false;
  group.Spawn([&has_run] { has_run = true; });
  const CancelShield shield;
  absl::Status waited = group.Wait();
  EXPECT_EQ(waited.ok(), has_run);
  return waited;
}

absl::Status CallOne(TaskGroup& group) {
  Future<int> answer = group.Async([] { return 1; });
  const CancelShield shield;
  absl::Status waited = group.Wait();
  EXPECT_EQ(answer.Get().status(), waited);
  return waited;
}

// A child that ends when the event is set, and not before, whoever asks.
WaitStage DestroyingAGroup(Runtime&) {
  auto go = std::make_shared<Event>();
  return {.wait =
              [go] {
                TaskGroup group;
                group.Spawn([go] {
                  const CancelShield shield;
                  return go->Wait();
                });
                return absl::OkStatus();
              },
          .satisfy = [go] { go->Set(); },
          .waiters = Waiters::kOfRuntime};
}

// A pool of one thread, which may be busy until the event is set.
struct SmallPool {
  void Occupy() {
    EXPECT_OK(pool->Submit([this] { EXPECT_OK(go.Wait()); }));
    AwaitTrue([this] { return pool->Statistics().active == 1; });
  }
  Event go;
  std::unique_ptr<PlatformPool> pool =
      std::make_unique<PlatformPool>(PlatformPoolOptions{.name = "small", .threads = 1});
};

WaitStage QueuedInAPool(Runtime&) {
  auto all = std::make_shared<SmallPool>();
  all->Occupy();
  return {.wait = [all] { return all->pool->RunBlocking([all] { EXPECT_TRUE(all->go.IsSet()); }); },
          .satisfy = [all] { all->go.Set(); }};
}

// A body that runs until the event is set. If the thread's time was up before it ran, it is as if
// it had not been called.
template <typename Call>
WaitStage Running(Waiters waiters, Call call) {
  struct Body {
    Event go;
    std::atomic<bool> has_come{false};
    std::atomic<bool> has_begun{false};
  };
  auto body = std::make_shared<Body>();
  return {.wait = [body, call]() -> absl::Status {
            const bool need_not_wait = body->go.IsSet();
            body->has_come = true;
            absl::Status status = call([body] {
              body->has_begun = true;
              return body->go.Wait();
            });
            const bool is_too_late = !need_not_wait && !body->has_begun;
            return is_too_late ? absl::OkStatus() : status;
          },
          .satisfy = [body] { body->go.Set(); },
          .waiters = waiters,
          .begins = Begins::kUnlessStopped,
          .has_begun = [body] { return body->has_begun.load(); },
          .has_come = [body] { return body->has_come.load(); }};
}

WaitStage RunningInAPool(Runtime&) {
  auto all = std::make_shared<SmallPool>();
  return Running(Waiters::kAll, [all](auto body) { return all->pool->RunBlocking(body); });
}

// All threads of the default pool are busy.
WaitStage QueuedInTheDefaultPool(Runtime& runtime) {
  struct Busy {
    Event go;
    std::vector<ThreadProbe> probes{PlatformPoolOptions{}.threads};
    std::vector<VirtualThread> threads;
  };
  auto all = std::make_shared<Busy>();
  for (ThreadProbe& probe : all->probes) {
    all->threads.push_back(runtime.Spawn([&probe, all = all.get()] {
      return RunBlocking([&probe, all] {
        probe.Attach();
        return all->go.Wait();
      });
    }));
    probe.AwaitParked();
  }
  return {.wait = [all] { return RunBlocking([all] { EXPECT_TRUE(all->go.IsSet()); }); },
          .satisfy =
              [all] {
                all->go.Set();
                for (VirtualThread& thread : all->threads) EXPECT_OK(thread.Join());
              },
          .waiters = Waiters::kVirtual};
}

WaitStage RunningInTheDefaultPool(Runtime&) {
  return Running(Waiters::kVirtual, [](auto body) { return RunBlocking(body); });
}

WaitStage ShuttingAPoolDown(Runtime&) {
  auto all = std::make_shared<SmallPool>();
  all->Occupy();
  return {.wait = [all] { return all->pool->Shutdown(); }, .satisfy = [all] { all->go.Set(); }};
}

WaitStage DestroyingAPool(Runtime&) {
  auto all = std::make_shared<SmallPool>();
  all->Occupy();
  return {.wait =
              [all] {
                all->pool.reset();
                return absl::OkStatus();
              },
          .satisfy = [all] { all->go.Set(); }};
}

// A runtime of its own, with a thread that ends when the event is set, and not before.
struct OtherRuntime {
  OtherRuntime() {
    runtime
        ->Spawn({.name = "stubborn"},
                [this] {
                  const CancelShield shield;
                  return go.Wait();
                })
        .Detach();
  }
  Event go;
  std::unique_ptr<Runtime> runtime =
      std::make_unique<Runtime>(RuntimeOptions{.carriers = 1, .virtual_threads_max = 1});
};

WaitStage OfAnotherRuntime(Waiters waiters, absl::Status (*wait)(std::unique_ptr<Runtime>&)) {
  auto all = std::make_shared<OtherRuntime>();
  return {.wait = [all, wait] { return wait(all->runtime); },
          .satisfy = [all] { all->go.Set(); },
          .waiters = waiters,
          .is_satisfied = [all] { return all->runtime->Statistics().live() == 0; }};
}

// A runtime of its own with a task that ends when the event is set, and not before.
WaitStage OfAnExecutor(absl::Status (*wait)(Executors&)) {
  struct Busy {
    Busy() {
      const absl::StatusOr<Executor*> executor = runtime.executors().Find("stubborn");
      EXPECT_OK((*executor)->Submit([this] {
        const CancelShield shield;
        return go.Wait();
      }));
    }
    Event go;
    Runtime runtime{{.carriers = 1}};
  };
  auto all = std::make_shared<Busy>();
  return {.wait = [all, wait] { return wait(all->runtime.executors()); },
          .satisfy = [all] { all->go.Set(); },
          .is_satisfied = [all] { return all->runtime.core().executors().IsIdle(); }};
}

// A sink with a record that is written when the event is set.
template <typename Sink, typename Record>
WaitStage AwaitingASink(std::shared_ptr<Sink> (*make)(std::shared_ptr<Event> go), Record record,
                        absl::Status (Sink::*wait)()) {
  auto go = std::make_shared<Event>();
  std::shared_ptr<Sink> sink = make(go);
  sink->Add(std::move(record));
  return {.wait = [sink, wait] { return ((*sink).*wait)(); },
          .satisfy = [go] { go->Set(); },
          .is_satisfied = [sink] { return sink->Statistics().queued == 0; }};
}

std::shared_ptr<JsonLines> SlowLines(std::shared_ptr<Event> go) {
  return *JsonLines::Open({.write = [go](std::string_view) { return go->Wait(); }});
}

std::shared_ptr<OtlpSpans> SlowSpans(std::shared_ptr<Event> go) {
  return OtlpSpans::Make({.send = [go](std::string_view) { return go->Wait(); },
                          .interval = milliseconds(1),
                          .attempt_max = hours(1)});
}

// A runtime of its own whose stop has a hook that ends when the event is set, and not before.
struct Stopping {
  Event go;
  Event has_begun;
  Runtime runtime{{.carriers = 1}};
  std::optional<StopHook> hook = runtime.lifecycle().OnStop({.name = "stubborn"}, [this] {
    has_begun.Set();
    const CancelShield shield;
    return go.Wait();
  });
};

WaitStage AwaitingAStop(Runtime&) {
  auto all = std::make_shared<Stopping>();
  return {.wait = [all] { return all->runtime.lifecycle().Stop(); },
          .satisfy = [all] { all->go.Set(); }};
}

WaitStage WithdrawingAStopHook(Runtime&) {
  auto all = std::make_shared<Stopping>();
  all->runtime.lifecycle().RequestStop();
  EXPECT_OK(all->has_begun.Wait());
  return {.wait =
              [all] {
                all->hook.reset();
                return absl::OkStatus();
              },
          .satisfy = [all] { all->go.Set(); }};
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"SleepFor",
       [](Runtime&) {
         return Sleeping([](std::chrono::nanoseconds delay) { return SleepFor(delay); });
       }},
      {"SleepUntil",
       [](Runtime&) {
         return Sleeping(
             [](std::chrono::nanoseconds delay) { return SleepUntil(Deadline::After(delay)); });
       }},
      {"Yield", [](Runtime&) { return Yielding(Yield); }},
      {"YieldIfDue", [](Runtime&) { return Yielding(YieldIfDue); }},
      {"TaskGroup::Spawn", [](Runtime&) { return AwaitingAPlace(SpawnOne); }},
      {"TaskGroup::Async", [](Runtime&) { return AwaitingAPlace(CallOne); }},
      {"TaskGroup::Wait", AwaitingChildren},
      {"TaskGroup::~TaskGroup", DestroyingAGroup},
      {"RunBlocking", QueuedInTheDefaultPool},
      {"RunBlocking, running", RunningInTheDefaultPool},
      {"PlatformPool::RunBlocking", QueuedInAPool},
      {"PlatformPool::RunBlocking, running", RunningInAPool},
      {"PlatformPool::Shutdown", ShuttingAPoolDown},
      {"PlatformPool::~PlatformPool", DestroyingAPool},
      {"Executors::AwaitIdle",
       [](Runtime&) {
         return OfAnExecutor([](Executors& executors) { return executors.AwaitIdle(); });
       }},
      {"Executors::Shutdown",
       [](Runtime&) {
         return OfAnExecutor(
             [](Executors& executors) { return executors.Shutdown(std::chrono::hours(1)); });
       }},
      {"JsonLines::Flush",
       [](Runtime&) { return AwaitingASink(SlowLines, LogRecord(), &JsonLines::Flush); }},
      {"JsonLines::Stop",
       [](Runtime&) { return AwaitingASink(SlowLines, LogRecord(), &JsonLines::Stop); }},
      {"OtlpSpans::Flush",
       [](Runtime&) { return AwaitingASink(SlowSpans, SpanRecord(), &OtlpSpans::Flush); }},
      {"OtlpSpans::Stop",
       [](Runtime&) { return AwaitingASink(SlowSpans, SpanRecord(), &OtlpSpans::Stop); }},
      {"Lifecycle::Stop", AwaitingAStop},
      {"StopHook::~StopHook", WithdrawingAStopHook},
      {"Runtime::Spawn",
       [](Runtime&) {
         return OfAnotherRuntime(Waiters::kOsThreads, [](std::unique_ptr<Runtime>& runtime) {
           VirtualThread thread = runtime->Spawn([] {});
           const CancelShield shield;
           return thread.Join();
         });
       }},
      {"Runtime::AwaitIdle",
       [](Runtime&) {
         return OfAnotherRuntime(
             Waiters::kAll, [](std::unique_ptr<Runtime>& runtime) { return runtime->AwaitIdle(); });
       }},
      {"Runtime::Shutdown",
       [](Runtime&) {
         return OfAnotherRuntime(Waiters::kOsThreads, [](std::unique_ptr<Runtime>& runtime) {
           return runtime->Shutdown();
         });
       }},
      {"Runtime::~Runtime",
       [](Runtime&) {
         return OfAnotherRuntime(Waiters::kOsThreads, [](std::unique_ptr<Runtime>& runtime) {
           runtime.reset();
           return absl::OkStatus();
         });
       }},
  };
  return stages;
}

BOBBIN_FOREIGN_TEST(SchedWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("sched", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
