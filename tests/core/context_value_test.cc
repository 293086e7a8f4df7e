// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/context_value.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

constinit const ContextValue<std::string> trace;
constinit const ContextValue<int> tenant;

// What is in force here: the trace, or "none".
std::string Trace() { return trace.Get() == nullptr ? "none" : *trace.Get(); }
int Tenant() { return tenant.Get() == nullptr ? -1 : *tenant.Get(); }

BOBBIN_TEST(ContextValueTest, AScopeSetsItAndItsEndRestoresWhatWas) {
  EXPECT_EQ(Trace(), "none");
  {
    const ContextScope outer(trace, "outer");
    EXPECT_EQ(Trace(), "outer");
    EXPECT_EQ(Tenant(), -1);
    {
      const ContextScope number(tenant, 7);
      const ContextScope inner(trace, "inner");
      EXPECT_EQ(Trace(), "inner");
      EXPECT_EQ(Tenant(), 7);
    }
    EXPECT_EQ(Trace(), "outer");
    EXPECT_EQ(Tenant(), -1);
  }
  EXPECT_EQ(Trace(), "none");
}

BOBBIN_TEST(ContextValueTest, ItIsInheritedBySpawnedThreadsAndTheirs) {
  const ContextScope scope(trace, "request");
  VirtualThread child = Spawn([] {
    EXPECT_EQ(Trace(), "request");
    const ContextScope inner(tenant, 3);
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([] {
      EXPECT_EQ(Trace(), "request");
      EXPECT_EQ(Tenant(), 3);
      Yield();
      EXPECT_EQ(Trace(), "request");
    });
    return group.Wait();
  });
  ASSERT_OK(child.Join());
  EXPECT_EQ(Tenant(), -1);
}

BOBBIN_TEST(ContextValueTest, ABodyKeepsWhatWasInForceWhenItWasStarted) {
  Event go_on;
  VirtualThread child;
  ThreadProbe probe;
  {
    const ContextScope scope(trace, "first");
    child = Spawn([&]() -> absl::Status {
      EXPECT_EQ(Trace(), "first");
      probe.Attach();
      const absl::Status status = go_on.Wait();
      EXPECT_EQ(Trace(), "first");  // The scope it came from is gone.
      return status;
    });
  }
  {
    const ContextScope scope(trace, "second");
    probe.AwaitParked();
    EXPECT_EQ(Trace(), "second");  // What others do does not matter here.
  }
  go_on.Set();
  ASSERT_OK(child.Join());
}

BOBBIN_TEST(ContextValueTest, ABodyStartsWithoutWhatItsPredecessorHad) {
  for (int i = 0; i < 100; ++i) {
    {
      const ContextScope scope(trace, "request");
      VirtualThread child = Spawn([] { EXPECT_EQ(Trace(), "request"); });
      ASSERT_OK(child.Join());
    }
    VirtualThread child = Spawn([] { EXPECT_EQ(Trace(), "none"); });
    ASSERT_OK(child.Join());
  }
}

BOBBIN_TEST(ContextValueTest, BlockingBodiesHaveTheirCallersValues) {
  PlatformPool pool({.name = "context", .threads = 1});
  {
    const ContextScope scope(trace, "blocking");
    EXPECT_THAT(RunBlocking([] { return Trace(); }), IsOkAndHolds("blocking"));
    EXPECT_THAT(pool.RunBlocking([&pool] {
      const ContextScope inner(tenant, 5);
      VirtualThread child = Spawn([] { EXPECT_EQ(Tenant(), 5); });
      EXPECT_OK(child.Join());
      EXPECT_THAT(pool.RunBlocking([] { return Tenant(); }), IsOkAndHolds(5));
      return Trace();
    }),
                IsOkAndHolds("blocking"));
  }
  EXPECT_THAT(pool.RunBlocking([] { return Trace(); }), IsOkAndHolds("none"));
}

BOBBIN_TEST(ContextValueTest, ASubmittedBodyHasItsSubmittersValues) {
  PlatformPool pool({.name = "context", .threads = 1});
  Event has_run;
  Event may_run;
  {
    const ContextScope scope(trace, "submitted");
    ASSERT_OK(pool.Submit([&] {
      EXPECT_OK(may_run.Wait());
      EXPECT_EQ(Trace(), "submitted");
      has_run.Set();
    }));
  }
  may_run.Set();
  ASSERT_OK(has_run.Wait());
  EXPECT_THAT(pool.RunBlocking([] { return Trace(); }), IsOkAndHolds("none"));
}

BOBBIN_TEST(ContextValueTest, AContinuationHasTheValuesOfWhereItWasGiven) {
  auto [promise, future] = MakePromise<void>();
  Future<std::string> seen;
  {
    const ContextScope scope(trace, "giver");
    seen = std::move(future).Then([] { return Trace(); });
  }
  const ContextScope scope(trace, "setter");
  promise.Set();
  EXPECT_EQ(Trace(), "setter");
  EXPECT_THAT(seen.Get(), IsOkAndHolds("giver"));
}

BOBBIN_FOREIGN_TEST(ContextValueTest, AForeignThreadPassesItsValuesOn) {
  const ContextScope scope(trace, "foreign");
  EXPECT_EQ(Trace(), "foreign");
  ASSERT_OK(runtime().Spawn([] { EXPECT_EQ(Trace(), "foreign"); }).Join());
  // Other OS threads are not started by us.
  std::thread([] { EXPECT_EQ(Trace(), "none"); }).join();
}

// Counts how many there are, on whatever threads.
struct Counted {
  explicit Counted(std::atomic<int>& live) : live_(&live) { ++*live_; }
  Counted(Counted&& other) noexcept : live_(other.live_) { ++*live_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*live_; }
  std::atomic<int>* live_;
};
constinit const ContextValue<Counted> counted;

BOBBIN_TEST(ContextValueTest, ItsLastOwnerDestroysIt) {
  std::atomic<int> live{0};
  Event go_on;
  VirtualThread child;
  {
    const ContextScope scope(counted, Counted(live));
    EXPECT_EQ(live, 1);
    child = Spawn([&] { return go_on.Wait(); });
  }
  EXPECT_EQ(live, 1);
  go_on.Set();
  ASSERT_OK(child.Join());
  EXPECT_EQ(live, 0);
}

BOBBIN_FOREIGN_TEST(ContextValueTest, OwnersOnAllCarriersLetGoAtTheSameTime) {
  std::atomic<int> live{0};
  const int rounds = Rounds(500);
  for (int round = 0; round < rounds; ++round) {
    VirtualThread parent = runtime().Spawn({.placement = Placement::kSpread}, [&] {
      const ContextScope outer(counted, Counted(live));
      TaskGroup group({.placement = Placement::kSpread});
      {
        const ContextScope inner(counted, Counted(live));
        for (int i = 0; i < 4; ++i) {
          group.Spawn([] {
            Yield();
            EXPECT_GE(*counted.Get()->live_, 1);
          });
        }
      }
      return group.Wait();
    });
    ASSERT_OK(parent.Join());
  }
  EXPECT_EQ(live, 0);
}

// A deep nest of scopes is let go without a deep stack.
BOBBIN_TEST(ContextValueTest, ManyNestedValuesAreDestroyedOneAfterAnother) {
  const int depth = Rounds(20'000);
  std::atomic<int> live{0};
  struct Nest {
    static void Deepen(std::atomic<int>& live, int depth) {
      if (depth == 0) return;
      const ContextScope scope(counted, Counted(live));
      // Each child holds all that is outside of it; the last one lets go of it.
      Spawn([&live, depth] { Deepen(live, depth - 1); }).Detach();
    }
  };
  Nest::Deepen(live, depth);
  AwaitTrue([&] { return live == 0; });
}

TEST(ContextValueDeathTest, ScopesThatEndOutOfOrderAbort) {
  EXPECT_DEATH(
      {
        auto first = std::make_unique<ContextScope<int>>(tenant, 1);
        const ContextScope second(tenant, 2);
        first.reset();
      },
      "context scopes end in the order");
}

TEST(ContextValueTest, ItCostsATaskNoMemory) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "which adds to a task";
  EXPECT_EQ(sizeof(internal::Task), 192u);
}

}  // namespace
}  // namespace bobbin::test
