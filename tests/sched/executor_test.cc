// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/context_value.h>
#include <bobbin/core/event.h>
#include <bobbin/core/local.h>
#include <bobbin/core/role.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/configuration.h>
#include <bobbin/sched/configuration_key.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/sched/tasks.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::AwaitTrue;
using test::Log;
using test::OsThreads;
using test::StatusIs;
using test::WithRuntime;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

MATCHER_P2(Says, code, message, "") {
  const absl::Status& status = test::StatusIn(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         testing::ExplainMatchResult(message, std::string(MessageOf(status)), result_listener);
}

constinit const ContextValue<int> tenant;

Executor& Named(Runtime& runtime, std::string_view name, ThreadKind kind) {
  absl::StatusOr<Executor*> found = runtime.executors().Find(name, kind);
  EXPECT_OK(found.status());
  return **found;
}

// Every task is counted once.
void ExpectBalanced(const Executor& executor) {
  const ExecutorStatistics is = executor.Statistics();
  EXPECT_EQ(is.queued + is.delayed + is.active, 0U);
  EXPECT_EQ(is.submitted, is.completed + is.failed + is.rejected + is.dropped + is.abandoned);
}

RuntimeOptions With(std::string_view name, ExecutorOptions executor) {
  RuntimeOptions options{.carriers = 2};
  options.executors.named.emplace(name, std::move(executor));
  return options;
}

constexpr ThreadKind kBoth[] = {ThreadKind::kPlatform, ThreadKind::kVirtual};

// --- Where a body runs.

BOBBIN_TEST(ExecutorTest, RunsOnThreadsOfItsKind) {
  EXPECT_EQ(*Async(Named(runtime(), "p", ThreadKind::kPlatform), CurrentRole).Get(),
            Role::kPlatform);
  EXPECT_EQ(*Async(Named(runtime(), "v", ThreadKind::kVirtual), CurrentRole).Get(), Role::kVirtual);
  EXPECT_EQ(*Async("default", CurrentRole).Get(), Role::kPlatform);
  EXPECT_EQ(*Async("default-virtual", CurrentRole).Get(), Role::kVirtual);
  EXPECT_EQ(*Async("anything", CurrentRole).Get(), Role::kPlatform);
}

BOBBIN_FOREIGN_TEST(ExecutorTest, TakesTasksFromForeignThreads) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    EXPECT_EQ(*Async(executor, [] { return 7; }).Get(), 7);
  }
  EXPECT_THAT(Async("default", [] {}).Get(),
              Says(absl::StatusCode::kFailedPrecondition, HasSubstr("Runtime::executors")));
}

BOBBIN_TEST(ExecutorTest, TasksSubmitTasksByName) {
  Future<int> outer =
      Async("default", [] { return *Async("default-virtual", [] { return 3; }).Get(); });
  EXPECT_EQ(*outer.Get(), 3);
}

BOBBIN_TEST(ExecutorTest, AVirtualTaskHasAThreadOfItsOwn) {
  static VthreadLocal<int> local;
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*Async(executor, [] { return ++*local; }).Get(), 1);
}

// --- Names and kinds.

BOBBIN_TEST(ExecutorsTest, OneNameIsOneExecutor) {
  EXPECT_EQ(*runtime().executors().Find("a"), *runtime().executors().Find("a"));
  EXPECT_NE(*runtime().executors().Find("a"), *runtime().executors().Find("b"));
  EXPECT_EQ(runtime().executors().All().size(), 2U);
}

BOBBIN_TEST(ExecutorsTest, TwoKindsForOneNameAreRefused) {
  Executors& executors = runtime().executors();
  EXPECT_OK(executors.Find("reports", ThreadKind::kVirtual).status());
  EXPECT_OK(executors.Find("reports", ThreadKind::kVirtual).status());
  EXPECT_OK(executors.Find("reports").status());
  EXPECT_THAT(
      executors.Find("reports", ThreadKind::kPlatform).status(),
      Says(absl::StatusCode::kFailedPrecondition,
           AllOf(HasSubstr("\"reports\""), HasSubstr("is virtual"), HasSubstr("as platform"),
                 HasSubstr("another name"), HasSubstr("bobbin.task.executor.reports.kind"))));
  EXPECT_THAT(executors.Find("default", ThreadKind::kVirtual).status(),
              Says(absl::StatusCode::kFailedPrecondition, HasSubstr("\"default\"")));
}

BOBBIN_TEST(ExecutorsTest, AutoAdoptsTheKindThatComesLater) {
  Executors& executors = runtime().executors();
  Executor& adopts = **executors.Find("adopts", ThreadKind::kAuto);
  EXPECT_OK(executors.Find("adopts", ThreadKind::kPlatform).status());
  EXPECT_OK(executors.Find("adopts", ThreadKind::kAuto).status());
  EXPECT_EQ(*Async(adopts, CurrentRole).Get(), Role::kPlatform);

  Executor& alone = **executors.Find("alone", ThreadKind::kAuto);
  EXPECT_EQ(alone.Statistics().kind, ThreadKind::kAuto);
  EXPECT_EQ(*Async(alone, CurrentRole).Get(), Role::kVirtual);
  EXPECT_EQ(alone.Statistics().kind, ThreadKind::kVirtual);
  EXPECT_THAT(executors.Find("alone", ThreadKind::kPlatform).status(),
              Says(absl::StatusCode::kFailedPrecondition, HasSubstr("is virtual")));
}

TEST(ExecutorsTest, TheKindInTheOptionsWins) {
  WithRuntime(With("reports", {.kind = ThreadKind::kVirtual}), [](Runtime& runtime) {
    Executor& executor = Named(runtime, "reports", ThreadKind::kPlatform);
    EXPECT_EQ(*Async(executor, CurrentRole).Get(), Role::kVirtual);
  });
}

TEST(ExecutorsTest, ThreadsComeWithTheFirstTask) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    Executor& executor = Named(runtime, "p", ThreadKind::kPlatform);
    EXPECT_EQ(executor.Statistics().submitted, 0U);
    EXPECT_OK(Async(executor, [] {}).Get());
    EXPECT_EQ(executor.Statistics().completed, 1U);
  });
}

TEST(ExecutorsTest, ThreadsAreNamedAsTheOptionsSay) {
  WithRuntime(With("p", {.thread_name_prefix = "mail-"}), [](Runtime& runtime) {
    Executor& executor = Named(runtime, "p", ThreadKind::kPlatform);
    EXPECT_THAT(*Async(executor, DescribeCurrentThread).Get(), HasSubstr("\"mail-1\""));
  });
  WithRuntime(With("v", {.thread_name_prefix = "mail-"}), [](Runtime& runtime) {
    Executor& executor = Named(runtime, "v", ThreadKind::kVirtual);
    EXPECT_THAT(*Async(executor, {.name = "receipt"}, DescribeCurrentThread).Get(),
                HasSubstr("\"mail-receipt\""));
  });
}

TEST(ExecutorsDeathTest, RefusesOptionsThatMakeNoSense) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Runtime(With("mail", {.concurrency = 0})), "executor \"mail\": concurrency is 0");
  EXPECT_DEATH(Runtime(With("mail", {.threads = 4, .threads_max = 2})),
               "\"mail\": threads_max is smaller than threads");
}

// --- What the configuration says.

Configuration Configured(ConfigurationValues values, ConfigurationValues environment = {}) {
  absl::StatusOr<Configuration> loaded =
      Configuration::Load({.folder = "", .values = values, .environment = environment});
  EXPECT_OK(loaded.status());
  return *std::move(loaded);
}

TEST(ExecutorConfigurationTest, ItWinsOverTheProgram) {
  RuntimeOptions options =
      With("mail", {.kind = ThreadKind::kPlatform, .concurrency = 7, .queue_max = 5});
  options.executors.configuration =
      Configured({{"bobbin.task.executor.mail.kind", " Virtual "},
                  {"bobbin.task.executor.mail.concurrency", "1"},
                  {"bobbin.task.executor.mail.queue-capacity", "1"},
                  {"bobbin.task.executor.mail.rejection", "discard-oldest"},
                  {"bobbin.task.executor.mail.thread-name-prefix", "post-"},
                  {"bobbin.task.executor.disk.threads", "1"}},
                 {{"BOBBIN_TASK_EXECUTOR_REPORTS_KIND", "virtual"}});
  WithRuntime(std::move(options), [](Runtime& runtime) {
    Executor& mail = Named(runtime, "mail", ThreadKind::kPlatform);
    Event has_begun;
    Event may_end;
    Future<std::string> first = Async(mail, {.name = "a"}, [&]() -> absl::StatusOr<std::string> {
      has_begun.Set();
      BOBBIN_RETURN_IF_ERROR(may_end.Wait());
      return DescribeCurrentThread();
    });
    EXPECT_OK(has_begun.Wait());
    Future<int> second = Async(mail, [] { return 2; });
    Future<int> third = Async(mail, [] { return 3; });
    EXPECT_THAT(second.Get(), StatusIs(absl::StatusCode::kResourceExhausted));
    may_end.Set();
    EXPECT_THAT(*first.Get(), AllOf(HasSubstr("virtual"), HasSubstr("\"post-a\"")));
    EXPECT_EQ(*third.Get(), 3);
    // The environment alone, found at the first use.
    EXPECT_EQ(*Async(Named(runtime, "reports", ThreadKind::kPlatform), CurrentRole).Get(),
              Role::kVirtual);
  });
}

TEST(ExecutorConfigurationTest, AMistakeKeepsTheRuntimeFromBeingMade) {
  RuntimeOptions options{.carriers = 1};
  options.executors.configuration = Configured(
      {{"bobbin.task.executor.mail.threads", "4"}, {"bobbin.task.executor.mail.max-threads", "2"}});
  EXPECT_THAT(Runtime::Create(std::move(options)).status(),
              Says(absl::StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("bobbin.task.executor.mail.max-threads"), HasSubstr("\"2\""),
                         HasSubstr("bobbin.task.executor.mail.threads, which is 4"))));
  EXPECT_THAT(Configuration::Load({.folder = "",
                                   .values = {{"bobbin.task.executor.mail.kind", "fast"}},
                                   .environment = ConfigurationValues()})
                  .status(),
              Says(absl::StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("bobbin.task.executor.mail.kind"), HasSubstr("\"fast\""),
                         HasSubstr("platform"), HasSubstr("virtual"))));
}

// --- What reaches the future.

BOBBIN_TEST(AsyncTest, TheFutureHasTheBodysResult) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    EXPECT_EQ(*Async(executor, [] { return std::make_unique<int>(5); }).Get().value(), 5);
    EXPECT_OK(Async(executor, [] {}).Get());
    EXPECT_OK(Async(executor, [] { return absl::OkStatus(); }).Get());
    EXPECT_THAT(Async(executor, [] { return absl::NotFoundError("no such order"); }).Get(),
                Says(absl::StatusCode::kNotFound, HasSubstr("no such order")));
    EXPECT_EQ(*Async(executor, [] { return absl::StatusOr<int>(6); }).Get(), 6);
    EXPECT_THAT(Async(executor, [] { return absl::StatusOr<int>(absl::DataLossError("torn")); })
                    .Get()
                    .status(),
                StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THROW(
        {
          absl::Status got = Async(executor, [] { throw std::invalid_argument("bad"); }).Get();
          FAIL() << got;
        },
        std::invalid_argument);
    ExpectBalanced(executor);
    EXPECT_EQ(executor.Statistics().failed, 3U);
    EXPECT_EQ(executor.Statistics().completed, 4U);
    EXPECT_EQ(executor.Statistics().uncaught, 0U);
  }
}

BOBBIN_TEST(AsyncTest, ArgumentsAreCopiedAtTheCall) {
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  std::string name = "first";
  auto owned = std::make_unique<int>(2);
  Future<std::string> future = Async(
      executor,
      [](const std::string& text, const std::unique_ptr<int>& number, const char* literal) {
        return text + std::to_string(*number) + literal;
      },
      name, std::move(owned), "!");
  name = "changed";
  EXPECT_EQ(*future.Get(), "first2!");
}

BOBBIN_TEST(AsyncTest, TakesMembersAndFunctions) {
  struct Order {
    int Total() const { return 42; }
  };
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  EXPECT_EQ(*Async(executor, &Order::Total, Order{}).Get(), 42);
  EXPECT_EQ(*Async(executor, &Order::Total, std::make_shared<Order>()).Get(), 42);
}

BOBBIN_TEST(AsyncTest, WhatTheBodyHasCapturedEndsBeforeTheFutureIsReady) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    auto captured = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = captured;
    EXPECT_OK(
        Async(executor, [captured = std::move(captured)] { return *captured; }).Get().status());
    EXPECT_TRUE(seen.expired());
  }
}

BOBBIN_TEST(AsyncTest, GetObeysADeadline) {
  Executor& executor = Named(runtime(), "p", ThreadKind::kPlatform);
  Event may_end;
  Future<void> future = Async(executor, [&may_end] { return may_end.Wait(); });
  EXPECT_THAT(future.GetUntil(Deadline::After(milliseconds(5))),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  may_end.Set();
  EXPECT_OK(future.Get());
}

BOBBIN_TEST(AsyncTest, DroppingTheFutureCancelsNothing) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    Event may_go_on;
    Event has_run;
    {
      Future<absl::Status> dropped = Async(executor, [&]() -> absl::StatusOr<absl::Status> {
        BOBBIN_RETURN_IF_ERROR(may_go_on.Wait());
        has_run.Set();
        return absl::OkStatus();
      });
    }
    may_go_on.Set();
    EXPECT_OK(has_run.Wait());
    EXPECT_OK(runtime().executors().AwaitIdle());
  }
}

// --- A body that returns a future.

BOBBIN_TEST(AsyncTest, AFutureThatIsReturnedIsFollowedNotWaitedFor) {
  WithRuntime(With("one", {.threads = 1}), [](Runtime& other) {
    Executor& one = Named(other, "one", ThreadKind::kPlatform);
    // The single thread would wait for itself.
    Future<int> outer = Async(one, [&one] { return Async(one, [] { return 8; }); });
    EXPECT_EQ(*outer.Get(), 8);
    ExpectBalanced(one);
  });
}

BOBBIN_TEST(AsyncTest, AFutureThatIsReturnedPassesOnWhateverComesOfIt) {
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  auto [promise, future] = MakePromise<int>();
  Future<int> pending = Async(executor, [f = std::move(future)]() mutable { return std::move(f); });
  EXPECT_OK(runtime().executors().AwaitIdle());
  EXPECT_FALSE(pending.IsReady());
  promise.Set(absl::AbortedError("lost"));
  EXPECT_THAT(pending.Get().status(), Says(absl::StatusCode::kAborted, HasSubstr("lost")));

  Future<void> thrown = Async(
      executor, [&executor] { return Async(executor, [] { throw std::runtime_error("deep"); }); });
  EXPECT_THROW(static_cast<void>(thrown.Get()), std::runtime_error);

  EXPECT_THAT(Async(executor, [] { return Future<int>(); }).Get().status(),
              StatusIs(absl::StatusCode::kInternal));
}

BOBBIN_TEST(AsyncTest, ALongChainOfFollowersDoesNotNest) {
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  struct Step {
    static Future<int> Take(Executor& on, int left) {
      return Async(on, [&on, left]() -> Future<int> {
        if (left > 0) return Take(on, left - 1);
        auto [promise, future] = MakePromise<int>();
        promise.Set(1);
        return std::move(future);
      });
    }
  };
  EXPECT_EQ(*Step::Take(executor, test::Rounds(5000)).Get(), 1);
}

// --- Cancelling.

BOBBIN_TEST(AsyncTest, TryCancelWithdrawsWhatHasNotBegun) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(With("one", {.threads = 1, .concurrency = 1}), [kind](Runtime& other) {
      Executor& one = Named(other, "one", kind);
      Event has_begun;
      Event may_end;
      Future<void> first = Async(one, [&] {
        has_begun.Set();
        return may_end.Wait();
      });
      EXPECT_OK(has_begun.Wait());
      std::atomic<bool> has_run = false;
      Future<int> second = Async(one, {.name = "second"}, [&has_run] {
        has_run = true;
        return 1;
      });
      EXPECT_FALSE(first.TryCancel());
      EXPECT_TRUE(second.TryCancel());
      EXPECT_FALSE(second.TryCancel());
      EXPECT_THAT(second.Get().status(),
                  Says(absl::StatusCode::kCancelled, HasSubstr("\"second\"")));
      may_end.Set();
      EXPECT_OK(first.Get());
      EXPECT_OK(other.executors().AwaitIdle());
      EXPECT_FALSE(has_run);
      EXPECT_EQ(one.Statistics().dropped, 1U);
      ExpectBalanced(one);
    });
  }
}

BOBBIN_TEST(AsyncTest, TryCancelAndTheBodyAgreeWhoWasFirst) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    for (int i = 0; i < test::Rounds(400); ++i) {
      std::atomic<bool> has_run = false;
      Future<void> future = Async(executor, [&has_run] { has_run = true; });
      for (uint64_t turns = random().Below(4); turns > 0; --turns) Yield();
      test::Spin(random().Below(3000));
      const bool is_cancelled = future.TryCancel();
      EXPECT_EQ(future.Get().ok(), !is_cancelled);
      EXPECT_EQ(has_run, !is_cancelled);
    }
    EXPECT_OK(runtime().executors().AwaitIdle());
    ExpectBalanced(executor);
  }
}

BOBBIN_TEST(AsyncTest, TryCancelReachesThroughThen) {
  WithRuntime(With("one", {.concurrency = 1}), [](Runtime& other) {
    Executor& one = Named(other, "one", ThreadKind::kVirtual);
    Event may_end;
    Future<void> first = Async(one, [&] { return may_end.Wait(); });
    Future<int> second = Async(one, [] { return 1; }).Then([](int value) { return value + 1; });
    EXPECT_TRUE(second.TryCancel());
    EXPECT_THAT(second.Get().status(), StatusIs(absl::StatusCode::kCancelled));
    may_end.Set();
    EXPECT_OK(first.Get());
  });
}

// --- Limits.

BOBBIN_TEST(ExecutorTest, NoMoreThanConcurrencyAtOnceAlsoParked) {
  WithRuntime(With("few", {.concurrency = 3}), [](Runtime& other) {
    Executor& few = Named(other, "few", ThreadKind::kVirtual);
    std::atomic<int> inside = 0;
    std::atomic<int> most = 0;
    std::vector<Future<void>> futures;
    for (int i = 0; i < test::Rounds(300); ++i) {
      futures.push_back(Async(few, [&] {
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) continue;
        Yield();
        --inside;
      }));
    }
    EXPECT_OK(WaitAll(futures));
    EXPECT_LE(most, 3);
    ExpectBalanced(few);
  });
}

BOBBIN_TEST(ExecutorTest, TasksBeginInTheOrderInWhichTheyCame) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(With("one", {.threads = 1, .concurrency = 1}), [kind](Runtime& other) {
      Executor& one = Named(other, "one", kind);
      Log<int> log;
      for (int i = 0; i < 5; ++i) EXPECT_OK(one.Submit([&log, i] { log.Add(i); }));
      EXPECT_OK(other.executors().AwaitIdle());
      EXPECT_THAT(log.Take(), ElementsAre(0, 1, 2, 3, 4));
    });
  }
}

// What a full executor does with one more; its first task blocks at `may_end`.
class FullExecutor {
 public:
  FullExecutor(ThreadKind kind, Rejection rejection,
               const std::function<void(FullExecutor&)>& body) {
    WithRuntime(
        With("full", {.threads = 1, .concurrency = 1, .queue_max = 1, .rejection = rejection}),
        [&](Runtime& runtime) {
          executor = &Named(runtime, "full", kind);
          Event has_begun;
          first = Async(*executor, [&] {
            has_begun.Set();
            return may_end.Wait();
          });
          EXPECT_OK(has_begun.Wait());
          second = Async(*executor, {.name = "second"}, [] { return 2; });
          body(*this);
          may_end.Set();
          EXPECT_OK(first.Get());
          EXPECT_OK(runtime.executors().AwaitIdle());
          ExpectBalanced(*executor);
        });
  }

  Executor* executor = nullptr;
  Event may_end;
  Future<void> first;
  Future<int> second;
};

TEST(ExecutorTest, AFullOneRefuses) {
  for (const ThreadKind kind : kBoth) {
    FullExecutor(kind, Rejection::kAbort, [](FullExecutor& full) {
      EXPECT_THAT(Async(*full.executor, {.name = "third"}, [] {}).Get(),
                  Says(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("\"third\""), HasSubstr("\"full\""), HasSubstr("full"))));
      EXPECT_THAT(full.executor->Submit([] {}), StatusIs(absl::StatusCode::kResourceExhausted));
      EXPECT_EQ(full.executor->Statistics().rejected, 2U);
      EXPECT_EQ(full.executor->Statistics().queued, 1U);
      EXPECT_EQ(full.executor->Statistics().active, 1U);
    });
  }
}

// First its threads, then its queue, then threads up to the maximum, then nothing.
TEST(ExecutorTest, ItGrowsWhenItsQueueIsFullAndThenRefuses) {
  Event may_end;
  WithRuntime(With("grows", {.threads = 1, .threads_max = 3, .queue_max = 2}),
              [&](Runtime& runtime) {
                Executor& executor = Named(runtime, "grows", ThreadKind::kPlatform);
                std::atomic<int> begun = 0;
                const auto submit = [&] {
                  return executor.Submit([&] {
                    ++begun;
                    return may_end.Wait();
                  });
                };
                EXPECT_OK(submit());
                AwaitTrue([&] { return begun == 1; });
                EXPECT_OK(submit());
                EXPECT_OK(submit());
                EXPECT_EQ(executor.Statistics().queued, 2U);
                EXPECT_EQ(begun, 1);
                for (int more = 2; more <= 3; ++more) {
                  EXPECT_OK(submit());
                  AwaitTrue([&] { return begun == more; });
                }
                EXPECT_EQ(executor.Statistics().queued, 2U);
                EXPECT_THAT(submit(), StatusIs(absl::StatusCode::kResourceExhausted));
                may_end.Set();
                EXPECT_OK(runtime.executors().AwaitIdle());
                EXPECT_EQ(executor.Statistics().completed, 5U);
                ExpectBalanced(executor);
              });
}

TEST(ExecutorTest, AFullOneHasTheCallerRunIt) {
  for (const ThreadKind kind : kBoth) {
    FullExecutor(kind, Rejection::kCallerRuns, [](FullExecutor& full) {
      EXPECT_EQ(*Async(*full.executor, CurrentRole).Get(), Role::kForeign);
    });
  }
}

TEST(ExecutorTest, AFullOneDiscards) {
  for (const ThreadKind kind : kBoth) {
    FullExecutor(kind, Rejection::kDiscard, [](FullExecutor& full) {
      EXPECT_OK(full.executor->Submit([] { FAIL(); }));
      EXPECT_THAT(Async(*full.executor, [] {}).Get(),
                  StatusIs(absl::StatusCode::kResourceExhausted));
      EXPECT_EQ(full.executor->Statistics().dropped, 2U);
    });
  }
}

TEST(ExecutorTest, AFullOneDiscardsTheOldest) {
  for (const ThreadKind kind : kBoth) {
    FullExecutor(kind, Rejection::kDiscardOldest, [](FullExecutor& full) {
      Future<int> third = Async(*full.executor, [] { return 3; });
      EXPECT_THAT(full.second.Get().status(),
                  Says(absl::StatusCode::kResourceExhausted, HasSubstr("\"second\"")));
      full.may_end.Set();
      EXPECT_EQ(*third.Get(), 3);
    });
  }
}

// A task of an executor with one place that submits to it, and waits.
BOBBIN_TEST(ExecutorTest, AFullOneAnswersItsOwnTasks) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(
        With("one", {.threads = 1, .concurrency = 1, .queue_max = 1}), [kind](Runtime& other) {
          Executor& one = Named(other, "one", kind);
          Future<absl::StatusCode> codes = Async(one, [&one]() -> absl::StatusOr<absl::StatusCode> {
            Future<void> queued = Async(one, [] {});
            const absl::Status refused = Async(one, [] {}).Get();
            EXPECT_THAT(queued.WaitUntil(Deadline::After(milliseconds(1))),
                        StatusIs(absl::StatusCode::kDeadlineExceeded));
            EXPECT_TRUE(queued.TryCancel());
            return refused.code();
          });
          EXPECT_EQ(*codes.Get(), absl::StatusCode::kResourceExhausted);
        });
  }
}

// --- Context.

BOBBIN_TEST(ExecutorTest, ABodyHasItsSubmittersContextAndNothingOfItStays) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(With("one", {.threads = 1, .concurrency = 1}), [kind](Runtime& other) {
      Executor& one = Named(other, "one", kind);
      const auto look = [] { return tenant.Get() == nullptr ? 0 : *tenant.Get(); };
      EXPECT_EQ(*Async(one, look).Get(), 0);
      Future<int> of_one;
      Future<int> of_two;
      {
        const ContextScope scope(tenant, 1);
        of_one = Async(one, look);
        const ContextScope inner(tenant, 2);
        of_two = Async(one, look);
      }
      // Queued behind them, and so begun where they end.
      Future<int> of_none = Async(one, look);
      EXPECT_EQ(*of_one.Get(), 1);
      EXPECT_EQ(*of_two.Get(), 2);
      EXPECT_EQ(*of_none.Get(), 0);
    });
  }
}

// Notes where it is called.
class NotingDecorator final : public TaskDecorator {
 public:
  explicit NotingDecorator(Log<std::string>& log) : log_(log) {}
  DecoratedBody Decorate(DecoratedBody body) const override {
    log_.Add("submit");
    return [this, body = std::move(body)]() mutable {
      log_.Add("before");
      body();
      log_.Add("after");
    };
  }

 private:
  Log<std::string>& log_;
};

TEST(ExecutorTest, ADecoratorGoesAroundEveryBody) {
  for (const ThreadKind kind : kBoth) {
    Log<std::string> log;
    WithRuntime(With("d", {.decorator = std::make_shared<NotingDecorator>(log)}),
                [&](Runtime& runtime) {
                  Executor& executor = Named(runtime, "d", kind);
                  EXPECT_EQ(*Async(executor,
                                   [&log] {
                                     log.Add("body");
                                     return 1;
                                   })
                                 .Get(),
                            1);
                });
    EXPECT_THAT(log.Take(), ElementsAre("submit", "before", "body", "after"));
  }
}

class SilentDecorator final : public TaskDecorator {
 public:
  DecoratedBody Decorate(DecoratedBody) const override {
    return [] {};
  }
};

TEST(ExecutorTest, ADecoratorThatForgetsTheBodyFailsTheFuture) {
  WithRuntime(With("d", {.decorator = std::make_shared<SilentDecorator>()}), [](Runtime& runtime) {
    Executor& executor = Named(runtime, "d", ThreadKind::kVirtual);
    EXPECT_THAT(
        Async(executor, {.name = "lost"}, [] { return 1; }).Get().status(),
        Says(absl::StatusCode::kInternal, AllOf(HasSubstr("\"lost\""), HasSubstr("decorator"))));
  });
}

// --- TaskOptions.

BOBBIN_TEST(ExecutorTest, BodiesThatHoldAMutexRunOneAtATime) {
  Mutex mutex;
  std::atomic<int> inside = 0;
  std::vector<Future<void>> futures;
  for (int i = 0; i < test::Rounds(100); ++i) {
    futures.push_back(Async(i % 2 == 0 ? "default" : "default-virtual", {.held = &mutex}, [&] {
      EXPECT_EQ(++inside, 1);
      Yield();
      --inside;
    }));
  }
  EXPECT_OK(WaitAll(futures));
  for (Future<void>& future : futures) EXPECT_OK(future.Get());
}

BOBBIN_TEST(ExecutorTest, ADelayedTaskBeginsNotEarly) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    const MonotonicTime begin = MonotonicNow();
    Future<MonotonicTime> late = Async(executor, {.delay = milliseconds(20)}, MonotonicNow);
    Future<MonotonicTime> early = Async(executor, {.delay = milliseconds(5)}, MonotonicNow);
    const MonotonicTime early_time = *early.Get();
    EXPECT_GE(early_time - begin, milliseconds(5));
    const MonotonicTime late_time = *late.Get();
    EXPECT_GE(late_time - begin, milliseconds(20));
    ExpectBalanced(executor);
  }
}

BOBBIN_TEST(ExecutorTest, ADelayedTaskCanBeCancelledAndLeavesNothing) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    Future<int> never = Async(executor, {.delay = hours(1)}, [] { return 1; });
    EXPECT_EQ(executor.Statistics().delayed, 1U);
    EXPECT_TRUE(never.TryCancel());
    EXPECT_THAT(never.Get().status(), StatusIs(absl::StatusCode::kCancelled));
    ExpectBalanced(executor);
  }
}

BOBBIN_TEST(ExecutorTest, ATaskIsRetriedUntilItSucceeds) {
  for (const ThreadKind kind : kBoth) {
    Executor& executor = Named(runtime(), ThreadKindName(kind), kind);
    auto attempts = std::make_shared<std::atomic<int>>(0);
    const TaskOptions options{.retry = {.attempts_max = 5, .backoff = milliseconds(1)}};
    Future<int> future = Async(executor, options, [attempts]() -> absl::StatusOr<int> {
      if (++*attempts < 3) return absl::UnavailableError("not yet");
      return 9;
    });
    EXPECT_EQ(*future.Get(), 9);
    EXPECT_EQ(*attempts, 3);
    EXPECT_EQ(executor.Statistics().retried, 2U);
    EXPECT_EQ(executor.Statistics().completed, 1U);
    ExpectBalanced(executor);
  }
}

BOBBIN_TEST(ExecutorTest, RetriesHaveALimitAndAReason) {
  Executor& executor = Named(runtime(), "v", ThreadKind::kVirtual);
  std::atomic<int> attempts = 0;
  const TaskOptions options{.retry = {.attempts_max = 3, .backoff = milliseconds(1)}};
  EXPECT_THAT(Async(executor, options,
                    [&]() -> absl::Status {
                      ++attempts;
                      return absl::AbortedError("again");
                    })
                  .Get(),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(attempts, 3);

  attempts = 0;
  EXPECT_THAT(Async(executor, options,
                    [&]() -> absl::Status {
                      ++attempts;
                      return absl::InvalidArgumentError("never");
                    })
                  .Get(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(attempts, 1);

  attempts = 0;
  EXPECT_THROW(static_cast<void>(Async(executor, options,
                                       [&] {
                                         ++attempts;
                                         throw std::runtime_error("thrown");
                                       })
                                     .Get()),
               std::runtime_error);
  EXPECT_EQ(attempts, 1);
}

// --- Failures that nobody hears of.

TEST(ExecutorTest, AFailureThatNobodyHearsOfIsHandedOver) {
  for (const ThreadKind kind : kBoth) {
    Log<std::string> log;
    RuntimeOptions options{.carriers = 2};
    options.executors.on_uncaught_failure = [&log](const TaskFailure& failure) {
      log.Add(std::string(failure.task) + "/" + std::string(failure.executor) + "/" +
              (failure.exception != nullptr ? "thrown" : std::string(MessageOf(failure.status))));
    };
    WithRuntime(std::move(options), [&](Runtime& runtime) {
      Executor& executor = Named(runtime, "mail", kind);
      // Submitted; a future that is dropped before it is ready; one that is dropped unread.
      EXPECT_OK(executor.Submit({.name = "a"}, [] { return absl::DataLossError("torn"); }));
      EXPECT_OK(runtime.executors().AwaitIdle());
      AwaitTrue([&] { return log.size() == 1; });
      {
        Event may_end;
        {
          Future<void> dropped = Async(executor, {.name = "b"}, [&] {
            EXPECT_OK(may_end.Wait());
            throw std::runtime_error("bad");
          });
        }
        may_end.Set();
        AwaitTrue([&] { return log.size() == 2; });
      }
      {
        Future<int> unread = Async(executor, {.name = "c"}, [] {
          return absl::StatusOr<int>(absl::DataLossError("unread"));
        });
        EXPECT_OK(unread.Wait());
        EXPECT_EQ(log.size(), 2U);
      }
      EXPECT_EQ(log.size(), 3U);
      // Heard of.
      EXPECT_FALSE(Async(executor, [] { return absl::DataLossError("read"); }).Get().ok());
      static_cast<void>(Async(executor, [] {
                          return absl::DataLossError("then");
                        }).Then([](const absl::Status&) {}));
      EXPECT_OK(runtime.executors().AwaitIdle());
      EXPECT_EQ(executor.Statistics().uncaught, 3U);
      EXPECT_EQ(executor.Statistics().failed, 5U);
    });
    EXPECT_THAT(log.Take(), ElementsAre("a/mail/torn", "b/mail/thrown", "c/mail/unread"));
  }
}

BOBBIN_TEST(ExecutorTest, TasksRunWithoutAFuture) {
  std::atomic<int> ran = 0;
  EXPECT_OK(Tasks::Platform([&] {
    EXPECT_EQ(CurrentRole(), Role::kPlatform);
    ++ran;
  }));
  EXPECT_OK(Tasks::Virtual([&] {
    EXPECT_EQ(CurrentRole(), Role::kVirtual);
    ++ran;
  }));
  EXPECT_OK(runtime().executors().AwaitIdle());
  EXPECT_EQ(ran, 2);
}

// --- The end.

TEST(ExecutorShutdownTest, RunsWhatIsQueuedAndRefusesWhatComes) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(With("one", {.threads = 1, .concurrency = 1}), [kind](Runtime& runtime) {
      Executor& one = Named(runtime, "one", kind);
      std::vector<Future<int>> futures;
      for (int i = 0; i < 20; ++i) futures.push_back(Async(one, [i] { return i; }));
      EXPECT_OK(runtime.executors().Shutdown(std::chrono::seconds(20)));
      for (int i = 0; i < 20; ++i) EXPECT_EQ(*futures[static_cast<size_t>(i)].Get(), i);
      EXPECT_THAT(Async(one, [] {}).Get(), StatusIs(absl::StatusCode::kUnavailable));
      EXPECT_THAT(runtime.executors().Find("new").status(),
                  Says(absl::StatusCode::kUnavailable, HasSubstr("\"new\"")));
      ExpectBalanced(one);
    });
  }
}

TEST(ExecutorShutdownTest, DropsWhatHasNotBegunAndStopsWhatRuns) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime(With("one", {.threads = 1, .concurrency = 1}), [kind](Runtime& runtime) {
      Executor& one = Named(runtime, "one", kind);
      Event never;
      Event has_begun;
      Future<void> running = Async(one, [&] {
        has_begun.Set();
        return never.Wait();
      });
      EXPECT_OK(has_begun.Wait());
      Future<int> queued = Async(one, {.name = "queued"}, [] { return 1; });
      Future<int> delayed = Async(one, {.delay = hours(1)}, [] { return 1; });
      // A fifth of it is for those who are asked to stop: a second, as the machine may be busy.
      EXPECT_OK(runtime.executors().Shutdown(milliseconds(5000)));
      EXPECT_THAT(running.Get(), StatusIs(absl::StatusCode::kCancelled));
      EXPECT_THAT(queued.Get().status(),
                  Says(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("\"queued\""), HasSubstr("before it could begin"))));
      EXPECT_THAT(delayed.Get().status(), StatusIs(absl::StatusCode::kUnavailable));
      EXPECT_EQ(one.Statistics().dropped, 2U);
      ExpectBalanced(one);
    });
  }
}

TEST(ExecutorShutdownTest, AStopTokenIsTold) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime({.carriers = 2}, [kind](Runtime& runtime) {
      Executor& executor = Named(runtime, "loops", kind);
      Event has_begun;
      Future<int> loops = Async(executor, [&](std::stop_token stop) {
        has_begun.Set();
        while (!stop.stop_requested()) Yield();
        return 1;
      });
      EXPECT_OK(has_begun.Wait());
      // A fifth of it is for those who are asked to stop: a second, as the machine may be busy.
      EXPECT_OK(runtime.executors().Shutdown(milliseconds(5000)));
      EXPECT_EQ(*loops.Get(), 1);
    });
  }
}

TEST(ExecutorShutdownTest, AbandonsAndNamesWhatDoesNotEnd) {
  for (const ThreadKind kind : kBoth) {
    Event may_end;
    WithRuntime({.carriers = 2}, [&](Runtime& runtime) {
      Executor& executor = Named(runtime, "stubborn", kind);
      Event has_begun;
      Future<void> stuck = Async(executor, {.name = "rock"}, [&] {
        const CancelShield deaf;
        has_begun.Set();
        return may_end.Wait();
      });
      EXPECT_OK(has_begun.Wait());
      const absl::Status ended = runtime.executors().Shutdown(milliseconds(50));
      EXPECT_THAT(ended, Says(absl::StatusCode::kDeadlineExceeded,
                              AllOf(HasSubstr("\"rock\""), HasSubstr("\"stubborn\""))));
      EXPECT_EQ(runtime.executors().Shutdown(milliseconds(50)), ended);
      EXPECT_THAT(stuck.Get(), Says(absl::StatusCode::kAborted, HasSubstr("\"rock\"")));
      EXPECT_EQ(executor.Statistics().abandoned, 1U);
      ExpectBalanced(executor);
      may_end.Set();
    });
  }
}

BOBBIN_TEST(ExecutorShutdownTest, ATaskMayShutDownWhatItRunsOn) {
  for (const ThreadKind kind : kBoth) {
    WithRuntime({.carriers = 2}, [kind](Runtime& other) {
      Executor& executor = Named(other, "e", kind);
      Future<void> stops = Async(
          executor, [&other] { return other.executors().Shutdown(std::chrono::seconds(20)); });
      EXPECT_OK(stops.Get());
    });
  }
}

// A body that its submitter runs, as the executor is full, hears by its stop token; the submitter's
// thread is not cancelled. One that does not listen is abandoned.
TEST(ExecutorShutdownTest, ABodyThatItsSubmitterRunsIsToldByItsToken) {
  for (const ThreadKind kind : kBoth) {
    for (const bool listens : {true, false}) {
      Event may_end;
      WithRuntime(With("full", {.threads = 1,
                                .concurrency = 1,
                                .queue_max = 0,
                                .rejection = Rejection::kCallerRuns}),
                  [&](Runtime& runtime) {
                    Executor& full = Named(runtime, "full", kind);
                    Event has_begun;
                    Future<void> first = Async(full, [&](std::stop_token stop) {
                      has_begun.Set();
                      while (!stop.stop_requested()) Yield();
                    });
                    EXPECT_OK(has_begun.Wait());
                    Event is_lent;
                    Future<Role> lent;
                    OsThreads submitters;
                    submitters.Start([&] {
                      lent = Async(full, [&](std::stop_token stop) {
                        is_lent.Set();
                        if (listens) {
                          while (!stop.stop_requested()) Yield();
                        } else {
                          EXPECT_OK(may_end.Wait());  // It is not cancelled.
                        }
                        return CurrentRole();
                      });
                      EXPECT_OK(CheckStop());
                    });
                    EXPECT_OK(is_lent.Wait());
                    const absl::Status ended = runtime.executors().Shutdown(milliseconds(500));
                    EXPECT_TRUE(listens || absl::IsDeadlineExceeded(ended)) << ended;
                    may_end.Set();
                    submitters.Join();  // Both bodies end, unless somebody was not told.
                    static_cast<void>(first.Get());
                    const absl::StatusOr<Role> result = lent.Get();
                    if (listens && result.ok()) {
                      EXPECT_EQ(*result, Role::kForeign);
                    } else {  // A machine that is slow abandons also one that listens.
                      EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kAborted));
                    }
                    ExpectBalanced(full);
                  });
    }
  }
}

// On each number of carriers, and so a thousand in all. For longer runs: BOBBIN_RANDOM_SHUTDOWNS.
int RandomShutdowns() {
  const char* const asked = std::getenv("BOBBIN_RANDOM_SHUTDOWNS");
  return asked == nullptr ? 340 : std::atoi(asked);
}

// Tasks that end, fail, wait, submit others and are cancelled, while the executors are shut down at
// a random moment: every future gets a result, and every task is counted once.
BOBBIN_FOREIGN_TEST(ExecutorShutdownTest, NothingIsLostAndNothingCountedTwice) {
  for (int round = 0; round < test::Rounds(RandomShutdowns()); ++round) {
    RuntimeOptions options{.carriers = carriers()};
    for (const ThreadKind kind : kBoth) {
      options.executors.named.emplace(
          ThreadKindName(kind),
          ExecutorOptions{.kind = kind,
                          .threads = 1 + random().Below(3),
                          .concurrency = 1 + random().Below(5),
                          .queue_max = random().Below(30),
                          .rejection = static_cast<Rejection>(random().Below(4))});
    }
    const uint64_t seed = random().Next();
    // They outlive the runtime, and with it the bodies that are abandoned.
    std::atomic<uint64_t> made = 0;
    std::atomic<uint64_t> ready = 0;
    std::atomic<bool> stops = false;
    Event never;
    WithRuntime(std::move(options), [&](Runtime& other) {
      const auto submit = [&](test::Random& chance) {
        Executor& executor =
            **other.executors().Find(chance.Below(2) == 0 ? "platform" : "virtual");
        const uint64_t what = chance.Below(8);
        TaskOptions task;
        if (what == 0) task.delay = milliseconds(chance.Below(3));
        if (what == 1) task.retry = {.attempts_max = 3, .backoff = std::chrono::microseconds(300)};
        Future<void> future = Async(executor, task, [&, what]() -> absl::Status {
          if (what == 1) return absl::UnavailableError("flaky");
          if (what == 2) return absl::DataLossError("broken");
          if (what == 3) Yield();
          if (what == 4) return SleepFor(std::chrono::microseconds(200));
          if (what == 5 && stops) return never.Wait();
          return absl::OkStatus();
        });
        ++made;
        if (what == 6) static_cast<void>(future.TryCancel());
        static_cast<void>(std::move(future).Then([&ready](const absl::Status&) { ++ready; }));
      };
      OsThreads submitters;
      for (uint64_t i = 0; i < 3; ++i) {
        submitters.Start([&, i] {
          test::Random chance(seed + i);
          while (!stops) submit(chance);
          for (int more = 0; more < 20; ++more) submit(chance);
        });
      }
      AwaitTrue([&] { return made >= 50 + seed % 300; });
      stops = true;
      // On a slow machine, some may be abandoned.
      static_cast<void>(other.executors().Shutdown(std::chrono::microseconds(200 + seed % 5000)));
      never.Set();  // For those that their submitters run.
      submitters.Join();
      AwaitTrue([&] { return ready == made; });
      uint64_t submitted = 0;
      for (const Executor* const executor : other.executors().All()) {
        ExpectBalanced(*executor);
        submitted += executor->Statistics().submitted;
      }
      EXPECT_EQ(submitted, made);
    });
  }
}

}  // namespace
}  // namespace bobbin
