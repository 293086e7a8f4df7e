// SPDX-License-Identifier: Apache-2.0
//
// The stacks of virtual threads: guarded, cheap in mappings, given back, and walkable.

#include <sys/time.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/stack_cache.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/leak_check.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

// Writes to so much of the calling stack.
[[gnu::noinline]] void Touch(size_t bytes) {
  char* const memory = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(memory, 1, bytes);
  __asm__ __volatile__("" : : "r"(memory) : "memory");
}

[[gnu::noinline]] int64_t Recurse(int64_t depth, int64_t depth_most) {
  volatile char frame[256] = {};
  frame[static_cast<size_t>(depth) % sizeof(frame)] = 1;
  const int64_t below = depth < depth_most ? Recurse(depth + 1, depth_most) : 0;
  return below + frame[0];
}

TEST(StackTest, ParkedThreadsCostHardlyAnyMappings) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "the sanitizer maps memory for every thread";
  static constexpr int kThreads = Rounds(30'000);
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    Event go;
    WaitGroup parked;
    parked.Add(kThreads);
    const size_t before = Mappings();
    VirtualThread main = runtime.Spawn([&] {
      TaskGroup group({.placement = Placement::kSpread});
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn([&] {
          parked.Done();
          return go.Wait();
        });
      }
      return group.Wait();
    });
    EXPECT_OK(parked.Wait());
    EXPECT_LT(Mappings(), before + 1000);
    EXPECT_GE(runtime.Statistics().stacks, size_t{kThreads});
    go.Set();
    EXPECT_OK(main.Join());
  });
}

// The same where guards split mappings: the limit is a clear error, and nothing else breaks.
TEST(StackTest, WhereGuardsAreScarceSpawnSaysSo) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "the sanitizer maps memory for every thread";
  WithRuntime({.carriers = 2, .forces_mprotect_guards = true}, [](Runtime& runtime) {
    Event go;
    VirtualThread main = runtime.Spawn([&] {
      std::vector<VirtualThread> threads;
      absl::Status refusal;
      while (threads.size() < 200'000) {
        absl::StatusOr<VirtualThread> spawned =
            TrySpawn({.placement = Placement::kSpread}, [&] { return go.Wait(); });
        if (!spawned.ok()) {
          refusal = spawned.status();
          break;
        }
        threads.push_back(*std::move(spawned));
        if (threads.size() % 1000 == 0) Yield();
      }
      EXPECT_THAT(refusal, StatusIs(kResourceExhausted));
      EXPECT_THAT(std::string(refusal.message()), testing::HasSubstr("vm.max_map_count"));
      EXPECT_GT(threads.size(), 1000);
      // Other mappings are still to be had, and what was there goes on.
      EXPECT_LT(Mappings(), size_t{65'000});
      EXPECT_NE(std::make_unique<char[]>(size_t{64} << 20), nullptr);
      go.Set();
      for (VirtualThread& thread : threads) EXPECT_OK(thread.Join());
      threads.clear();
      EXPECT_OK(TrySpawn({}, [] {})->Join());
    });
    EXPECT_OK(main.Join());
  });
}

BOBBIN_TEST(StackTest, AThreadMayUseItsWholeStack) {
  const size_t usable = (size_t{256} << 10) - 4096 - size_t{16} * 64;
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([usable] {
      Yield();
      const auto& self = static_cast<const internal::Task&>(internal::Current());
      const internal::StackPool& pool = self.dispatcher()->stacks().pool();
      EXPECT_GE(pool.BytesOf(self.stack()), usable);
      // All but what is above here, and a page for what is below.
      const char* const here = static_cast<const char*>(__builtin_frame_address(0));
      EXPECT_GT(here, pool.LimitOf(self.stack()));
      EXPECT_LT(here, pool.TopOf(self.stack()));
      Touch(static_cast<size_t>(here - pool.LimitOf(self.stack())) - (size_t{16} << 10));
    });
  }
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(StackTest, AThreadThatEndsLeavesItsStackToTheNext) {
  for (int i = 0; i < Rounds(20'000); ++i) ASSERT_OK(Spawn([] {}).Join());
  // A handful a carrier, not one a thread.
  EXPECT_LE(runtime().Statistics().stacks, static_cast<size_t>(carriers()) * 64);
}

TEST(StackTest, AParkedThreadThatUsedLittleCostsLittle) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer's frames are larger";
  constexpr int kThreads = 20'000;
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    const size_t before = ResidentBytes();
    Event go;
    WaitGroup parked;
    parked.Add(kThreads);
    VirtualThread main = runtime.Spawn([&] {
      TaskGroup group;
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn([&] {
          parked.Done();
          return go.Wait();
        });
      }
      return group.Wait();
    });
    EXPECT_OK(parked.Wait());
    EXPECT_LT(ResidentBytes() - before, size_t{kThreads} * (size_t{12} << 10));
    go.Set();
    EXPECT_OK(main.Join());
  });
}

// --- Sizes that threads ask for

// The stack on which the caller runs.
struct OwnStack {
  const char* limit;
  const char* top;
  size_t usable() const { return static_cast<size_t>(top - limit); }
  size_t left() const {
    return static_cast<size_t>(static_cast<const char*>(__builtin_frame_address(0)) - limit);
  }
};
OwnStack StackOfCaller() {
  auto& self = static_cast<internal::Task&>(internal::Current());
  const internal::StackPool& pool = self.dispatcher()->stacks().pool().OfTask(self);
  return {pool.LimitOf(self.stack()), pool.TopOf(self.stack())};
}

constexpr size_t kKib = 1024;
constexpr size_t kMib = kKib * kKib;
// A page that guards, and what tops differ by.
constexpr size_t kNotUsable = 4096 + 16 * 64;

BOBBIN_TEST(StackSizeTest, EachThreadHasTheSizeThatItAsksFor) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int round = 0; round < 5; ++round) {
    // A sanitizer's frames need more.
    const size_t least = kUnderSanitizer ? 64 * kKib : 16 * kKib;
    for (const size_t bytes : {size_t{0}, least, 64 * kKib, 256 * kKib, kMib, 64 * kMib}) {
      // Half of them one byte more than the next smaller size.
      const size_t asked = round % 2 == 0 || bytes <= least ? bytes : bytes / 2 + 1;
      group.Spawn({.stack_bytes = asked}, [bytes] {
        const size_t size = bytes == 0 ? 256 * kKib : bytes;
        EXPECT_GE(StackOfCaller().usable(), size - kNotUsable);
        EXPECT_LE(StackOfCaller().usable(), size);
        Yield();
        // All but what is above here, and some for what is below.
        if (StackOfCaller().left() > 64 * kKib) {
          Touch(std::min(StackOfCaller().left() - 32 * kKib, 2 * kMib));
        }
      });
    }
  }
  ASSERT_OK(group.Wait());
}

// Sizes follow one another on the same carrier, in every order: each begins on a stack of its own
// size, and the stacks of those that have ended are used again.
BOBBIN_TEST(StackSizeTest, AStackIsLeftOnlyToAThreadOfTheSameSize) {
  const int threads = Rounds(3000);
  TaskGroup group;
  const size_t sizes[] = {0, 16 * kKib, 64 * kKib, kMib};
  for (int i = 0; i < threads; ++i) {
    const size_t bytes =
        kUnderSanitizer ? std::max(sizes[random().Below(4)], 64 * kKib) : sizes[random().Below(4)];
    group.Spawn({.stack_bytes = bytes}, [bytes, yields = random().OneIn(3)] {
      const size_t size = bytes == 0 ? 256 * kKib : bytes;
      EXPECT_GE(StackOfCaller().usable(), size - kNotUsable);
      EXPECT_LE(StackOfCaller().usable(), size);
      if (yields) Yield();
      EXPECT_LE(StackOfCaller().left(), StackOfCaller().usable());
    });
    if (i % 64 == 0) Yield();
  }
  ASSERT_OK(group.Wait());
  // One after the other, they need no more.
  const auto stacks = [&] { return runtime().Statistics().stacks; };
  for (int i = 0; i < 50; ++i) ASSERT_OK(Spawn({.stack_bytes = kMib}, [] {}).Join());
  const uint64_t before = stacks();
  for (int i = 0; i < 50; ++i) ASSERT_OK(Spawn({.stack_bytes = kMib}, [] {}).Join());
  EXPECT_LE(stacks(), before + 8 * static_cast<uint64_t>(carriers()));
  EXPECT_GT(runtime().Statistics().sized_stacks, 0);
}

// What fits into a large one only. A sanitizer's frames are larger, but so is the stack.
BOBBIN_TEST(StackSizeTest, DeepRecursionFitsWhereItWasAskedFor) {
  const int64_t frames = 10'000;  // More than 2.5 MB.
  int64_t counted = 0;
  VirtualThread deep = Spawn({.stack_bytes = 32 * kMib}, [&] {
    Yield();
    counted = Recurse(0, frames);
    Yield();
  });
  ASSERT_OK(deep.Join());
  EXPECT_GE(counted, frames / 256);
  EXPECT_GE(runtime().MeasureStacks().deepest_bytes, size_t{2} * kMib);
}

BOBBIN_TEST(StackSizeTest, DumpsAndStatisticsKnowIt) {
  const RuntimeStatistics before = runtime().Statistics();
  const StackUsage usage_before = runtime().MeasureStacks();
  Event go;
  ThreadProbe probe;
  VirtualThread large = Spawn({.name = "large", .stack_bytes = kMib}, [&] {
    Touch(700 * kKib);
    probe.Attach();
    return go.Wait();
  });
  probe.AwaitParked();
  EXPECT_THAT(runtime().Dump(), testing::ContainsRegex("\"large\".*, 7[0-9][0-9] KiB touched"));
  EXPECT_THAT(runtime().Dump({.format = DumpFormat::kJson}),
              testing::ContainsRegex("\"stack_bytes\": ?104[0-9][0-9][0-9][0-9]"));
  const RuntimeStatistics now = runtime().Statistics();
  const StackUsage usage = runtime().MeasureStacks();
  EXPECT_GT(now.sized_stacks, before.sized_stacks);
  EXPECT_GE(usage.deepest_bytes, 700 * kKib);
  EXPECT_GE(usage.resident_bytes - usage_before.resident_bytes, 700 * kKib);
  EXPECT_GE(usage.reserved_bytes - usage_before.reserved_bytes,
            (now.sized_stacks - before.sized_stacks) * kMib);
  EXPECT_THAT(now.Text(), testing::ContainsRegex("stacks: .*, [1-9][0-9]* of other sizes"));
  go.Set();
  EXPECT_OK(large.Join());
}

BOBBIN_TEST(StackSizeTest, ASizeThatIsNoneIsRefused) {
  for (const size_t bytes : {size_t{1}, 16 * kKib - 1, 64 * kMib + 1}) {
    const auto refused = TrySpawn({.stack_bytes = bytes}, [] {});
    EXPECT_THAT(refused.status(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(refused.status().message()),
                testing::HasSubstr("stack_bytes is " + std::to_string(bytes)));
    TaskGroup group;
    EXPECT_THAT(group.TrySpawn({.stack_bytes = bytes}, [] {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_OK(TrySpawn({.stack_bytes = 64 * kMib}, [] {})->Join());
}

TEST(StackSizeDeathTest, SpawnAbortsAtASizeThatIsNone) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        runtime.Spawn({.stack_bytes = 1000}, [] {}).Detach();
      },
      "stack_bytes of a virtual thread: from 16 KiB to 64 MiB");
}

// Where guards are scarce there are few of each size: TrySpawn says so, and what Spawn has started
// gets the stack of one that ends, whichever carrier that was on.
TEST(StackSizeTest, WhereGuardsAreScarceTheyWaitForOneAnother) {
  WithRuntime({.carriers = 2, .forces_mprotect_guards = true}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([&] {
      Event go;
      TaskGroup holders({.placement = Placement::kSpread});
      std::atomic<int> begun{0};
      int admitted = 0;
      absl::Status refusal;
      while (refusal.ok()) {
        refusal = holders.TrySpawn({.stack_bytes = kMib}, [&] {
          ++begun;
          return go.Wait();
        });
        if (refusal.ok()) ++admitted;
      }
      EXPECT_THAT(refusal, StatusIs(kResourceExhausted));
      EXPECT_THAT(std::string(refusal.message()), testing::HasSubstr("stacks of 1024 KiB"));
      AwaitTrue([&] { return begun == admitted; });
      // Others of the same size wait, those of another one do not.
      TaskGroup late({.placement = Placement::kSpread});
      std::atomic<int> ran{0};
      for (int i = 0; i < 20; ++i) late.Spawn({.stack_bytes = kMib}, [&] { ++ran; });
      for (int i = 0; i < 20; ++i) EXPECT_OK(Spawn({.stack_bytes = 2 * kMib}, [] {}).Join());
      AwaitTrue([&] { return runtime.Statistics().without_stack == 20; });
      EXPECT_EQ(ran, 0);
      go.Set();
      EXPECT_OK(holders.Wait());
      EXPECT_OK(late.Wait());
      EXPECT_EQ(ran, 20);
      EXPECT_EQ(runtime.Statistics().without_stack, 0);
    });
    EXPECT_OK(main.Join());
  });
}

void OverflowIn(Runtime& runtime, size_t stack_bytes = 0) {
  static_cast<void>(runtime
                        .Spawn({.name = "deep one", .stack_bytes = stack_bytes},
                               [] { static_cast<void>(Recurse(0, 1'000'000'000)); })
                        .Join());
}

TEST(StackSizeDeathTest, AnOverflowOfASizeOfItsOwnNamesThreadAndBounds) {
  if (kUnderAddressSanitizer) GTEST_SKIP() << "the sanitizer reports it in its own words";
  for (const auto& [bytes, digits] : {std::pair{64 * kKib, "6[0-9][0-9][0-9][0-9]"},
                                      std::pair{4 * kMib, "41[0-9][0-9][0-9][0-9][0-9]"}}) {
    EXPECT_DEATH(
        {
          Runtime runtime({.carriers = 2});
          OverflowIn(runtime, bytes);
        },
        std::string(
            "stack overflow in virtual thread \"deep one\" \\(id [0-9]+\\): its stack of ") +
            digits + " bytes(.*\n)*.* bobbin::test::.*Recurse");
  }
}

TEST(StackDeathTest, AnOverflowNamesTheThread) {
  constexpr char kMessage[] =
      "stack overflow in virtual thread \"deep one\" \\(id [0-9]+\\)(.*\n)*.* "
      "bobbin::test::.*Recurse";
  if (kUnderAddressSanitizer) GTEST_SKIP() << "the sanitizer reports it in its own words";
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 2});
        OverflowIn(runtime);
      },
      kMessage);
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1, .stack_bytes = 64 << 10, .forces_mprotect_guards = true});
        OverflowIn(runtime);
      },
      kMessage);
}

// A walk over a virtual thread's stack ends at its first frame.
struct Walk {
  int frames = 0;
  uintptr_t last_cfa = 0;
};
_Unwind_Reason_Code Step(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  ++walk.frames;
  walk.last_cfa = static_cast<uintptr_t>(_Unwind_GetCFA(context));
  return walk.frames < 200 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

[[gnu::noinline]] Walk WalkFrom(int depth) {
  if (depth > 0) {
    const Walk walk = WalkFrom(depth - 1);
    __asm__ __volatile__("" : : : "memory");  // No tail call.
    return walk;
  }
  Walk walk;
  _Unwind_Backtrace(&Step, &walk);
  return walk;
}

void ExpectWalkEndsOnOwnStack(const Walk& walk, int frames_least) {
  const auto& self = static_cast<const internal::Task&>(internal::Current());
  const internal::StackPool& pool = self.dispatcher()->stacks().pool();
  EXPECT_GE(walk.frames, frames_least);
  EXPECT_LT(walk.frames, 100);
  EXPECT_GT(walk.last_cfa, reinterpret_cast<uintptr_t>(pool.LimitOf(self.stack())));
  EXPECT_LE(walk.last_cfa, reinterpret_cast<uintptr_t>(pool.TopOf(self.stack())));
}

BOBBIN_TEST(StackTest, AWalkEndsAtTheFirstFrame) {
  ExpectWalkEndsOnOwnStack(WalkFrom(20), 20);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn([] {
      ExpectWalkEndsOnOwnStack(WalkFrom(3), 4);
      Yield();
      ExpectWalkEndsOnOwnStack(WalkFrom(5), 6);
    });
  }
  ASSERT_OK(group.Wait());
}

// Where walks began and ended, as many as there is room for.
struct WalkEnds {
  std::atomic<const void*> first;
  std::atomic<const void*> last;
};
std::array<WalkEnds, 4096> walk_ends;
std::atomic<size_t> walks{0};
std::atomic<int> endless_walks{0};

void WalkOnSignal(int, siginfo_t*, void* context) {
  const internal::Backtrace walk = internal::Backtrace::OfInterrupted(context);
  if (walk.is_cut()) ++endless_walks;
  const size_t place = walks++;
  if (walk.empty() || place >= walk_ends.size()) return;
  walk_ends[place].first = walk.frames().front();
  walk_ends[place].last = walk.frames().back();
}

// A profiler's signal finds the thread anywhere: in the switch, in the entry, on the carrier's
// stack.
TEST(StackTest, AProfilerWalksAtAnyInstant) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer must not be walked from a signal";
  walks = 0;
  endless_walks = 0;
  struct sigaction action {};
  struct sigaction previous {};
  action.sa_sigaction = &WalkOnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ASSERT_EQ(sigaction(SIGPROF, &action, &previous), 0);
  internal::PrepareUnwinder();
  const itimerval millisecond = {{0, 1000}, {0, 1000}};
  ASSERT_EQ(setitimer(ITIMER_PROF, &millisecond, nullptr), 0);
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([] {
      Semaphore turns[2] = {Semaphore(1), Semaphore(0)};
      std::atomic<bool> is_over{false};
      TaskGroup group;
      for (int i = 0; i < 2; ++i) {
        group.Spawn([&, i]() -> absl::Status {
          while (!is_over) {
            if (absl::Status got = turns[i].Acquire(); !got.ok()) return got;
            turns[1 - i].Release();
          }
          return absl::OkStatus();
        });
      }
      group.Spawn([&]() -> absl::Status {
        while (!is_over) {
          if (absl::Status joined = Spawn([] { Yield(); }).Join(); !joined.ok()) return joined;
        }
        return absl::OkStatus();
      });
      EXPECT_OK(SleepFor(std::chrono::milliseconds(1000)));
      is_over = true;
      for (Semaphore& turn : turns) turn.Release();
      return group.Wait();
    });
    EXPECT_OK(main.Join());
  });
  const itimerval off = {};
  ASSERT_EQ(setitimer(ITIMER_PROF, &off, nullptr), 0);
  ASSERT_EQ(sigaction(SIGPROF, &previous, nullptr), 0);
  EXPECT_GT(walks, size_t{20});
  EXPECT_EQ(endless_walks, 0);
  std::map<std::string, int> wrong;
  for (const WalkEnds& ends : walk_ends) {
    if (ends.first == nullptr) continue;
    const std::string last = internal::FrameName(ends.last);
    const bool is_right = last == "bobbin::internal::SwitchEntry::Enter()" ||
                          last.find("clone") != last.npos || last.find("_start") != last.npos;
    // Boost's few instructions say nothing of how to walk on. Where an OS thread begins, the C
    // library has lost its names.
    const bool is_bare = last.find("fcontext") != last.npos || last.empty();
    if (!is_right && !is_bare) ++wrong[internal::FrameName(ends.first) + " to " + last];
  }
  EXPECT_THAT(wrong, testing::IsEmpty());
}

TEST(StackPoolTest, StacksAreDistinctGuardedAndReused) {
  internal::StackPool pool({.stack_bytes = size_t{64} << 10});
  std::vector<internal::Stack> stacks;
  ASSERT_EQ(pool.Take(100, stacks), 100);
  std::vector<uintptr_t> bases;
  for (const internal::Stack stack : stacks) {
    bases.push_back(reinterpret_cast<uintptr_t>(stack.base));
    // All of it can be written to.
    std::memset(pool.LimitOf(stack), 1, pool.BytesOf(stack));
  }
  std::sort(bases.begin(), bases.end());
  for (size_t i = 1; i < bases.size(); ++i) {
    EXPECT_GE(bases[i] - bases[i - 1], pool.stack_bytes());
  }
  pool.Give(100, stacks, true);
  EXPECT_TRUE(stacks.empty());
  ASSERT_EQ(pool.Take(50, stacks), 50);
  EXPECT_EQ(pool.carved(), 100);
  for (const internal::Stack stack : stacks) EXPECT_EQ(*pool.LimitOf(stack), 0);  // Fresh pages.
  EXPECT_DEATH(*const_cast<volatile char*>(stacks[0].base) = 1, "");
  pool.Give(50, stacks, false);
}

// After a burst, each trim period gives half of the pages that nobody needed back to the
// system.
TEST(StackCacheTest, APeriodsEndGivesHalfOfTheIdlePagesBack) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer keeps memory of its own";
  constexpr size_t kStacks = 2000;
  internal::StackPool pool({.stack_bytes = size_t{64} << 10});
  internal::StackCache cache(pool);
  const size_t before = ResidentBytes();
  std::vector<internal::Stack> burst;
  for (size_t i = 0; i < kStacks; ++i) {
    burst.push_back(cache.Take());
    std::memset(pool.LimitOf(burst.back()), 1, pool.BytesOf(burst.back()));
  }
  const size_t most = ResidentBytes() - before;
  const size_t carved = pool.carved();
  EXPECT_GE(most, kStacks * (size_t{60} << 10));
  for (const internal::Stack stack : burst) cache.Give(stack);
  cache.EndPeriod();  // Of the burst itself: all were needed.
  size_t left = most;
  for (int period = 0; period < 4; ++period) {
    cache.EndPeriod();
    while (cache.Trim(128)) continue;
    const size_t now = ResidentBytes() - before;
    EXPECT_LT(now, left / 2 + left / 8);
    left = now;
  }
  // What was trimmed is as good as new.
  burst.clear();
  for (size_t i = 0; i < kStacks; ++i) burst.push_back(cache.Take());
  EXPECT_LE(pool.carved(), carved + 512);  // A batch, at most.
  for (const internal::Stack stack : burst) cache.Give(stack);
}

// Whoever gives a stack back may still stand on it. So where carriers keep few, it is others that
// they share.
TEST(StackCacheTest, TheStackThatWasGivenLastIsOfferedToNobodyElse) {
  constexpr size_t kStacks = 300;
  for (const size_t cached : {size_t{0}, size_t{64}}) {
    internal::StackPool pool({.stack_bytes = size_t{16} << 10,
                              .force_mprotect = true,
                              .guards_max = kStacks,
                              .cached_where_scarce = cached});
    internal::StackCache cache(pool);
    std::vector<internal::Stack> taken;
    for (size_t i = 0; i < kStacks; ++i) taken.push_back(cache.Take());
    size_t most_offered = 0;
    for (const internal::Stack stack : taken) {
      cache.Give(stack);
      std::vector<internal::Stack> offered;
      pool.Take(kStacks, offered);
      most_offered = std::max(most_offered, offered.size());
      for (const internal::Stack other : offered) ASSERT_NE(other.base, stack.base);
      pool.Give(offered.size(), offered, false);
    }
    EXPECT_GE(most_offered, kStacks / 2);
  }
}

// Whether the kernel finds something to read there; where it does not, nobody does.
bool CanBeRead(const char* byte) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool can_be_read = write(ends[1], byte, 1) == 1;
  EXPECT_TRUE(can_be_read || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return can_be_read;
}

// In every slab, at every place in it, and also when the pages above have gone and come again.
TEST(StackPoolTest, EveryGuardStandsAlsoWhenPagesWereGivenBack) {
  for (const bool force_mprotect : {false, true}) {
    constexpr size_t kStacks = 3000;
    internal::StackPool pool({.stack_bytes = size_t{16} << 10, .force_mprotect = force_mprotect});
    std::vector<internal::Stack> stacks;
    for (int round = 0; round < 2; ++round) {
      while (stacks.size() < kStacks) {
        ASSERT_NE(pool.Take(std::min<size_t>(100, kStacks - stacks.size()), stacks), 0);
      }
      size_t open_guards = 0;
      size_t closed_stacks = 0;
      for (const internal::Stack stack : stacks) {
        std::memset(pool.LimitOf(stack), 1, pool.BytesOf(stack));
        open_guards += CanBeRead(stack.base) ? 1 : 0;
        open_guards += CanBeRead(pool.LimitOf(stack) - 1) ? 1 : 0;
        closed_stacks += CanBeRead(pool.LimitOf(stack)) ? 0 : 1;
      }
      EXPECT_EQ(open_guards, 0);
      EXPECT_EQ(closed_stacks, 0);
      pool.Give(kStacks, stacks, true);
    }
    EXPECT_EQ(pool.carved(), kStacks);
  }
}

TEST(StackPoolTest, ItStopsAtItsLimit) {
  internal::StackPool pool(
      {.stack_bytes = size_t{64} << 10, .force_mprotect = true, .guards_max = 10});
  EXPECT_EQ(pool.guard_kind(), internal::GuardKind::kMprotect);
  std::vector<internal::Stack> stacks;
  EXPECT_EQ(pool.Take(8, stacks), 8);
  EXPECT_EQ(pool.Take(8, stacks), 2);
  EXPECT_EQ(pool.Take(8, stacks), 0);
  pool.Give(10, stacks, true);
  EXPECT_EQ(pool.Take(8, stacks), 8);
  EXPECT_DEATH(*const_cast<volatile char*>(stacks[0].base) = 1, "");
  pool.Give(8, stacks, false);
}

}  // namespace
}  // namespace bobbin::test
