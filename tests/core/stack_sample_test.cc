// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/core/internal/thread_signal.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {

// Computes until it is told to stop; the clock is for the thread sanitizer, which calls handlers
// only where it is called itself.
[[gnu::noinline]] void ComputeUntil(const std::atomic<bool>& is_over) {
  while (!is_over.load()) static_cast<void>(usleep(1));
}

namespace {

using internal::StackSample;
using internal::ThreadSignal;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> NamesOf(const internal::Backtrace& backtrace) {
  std::vector<std::string> names;
  for (const void* const frame : backtrace.frames()) names.push_back(internal::FrameName(frame));
  return names;
}

TEST(StackSampleTest, AnOsThreadAnswersWithWhatItRuns) {
  ThreadSignal::Install(SIGURG);
  std::atomic<pid_t> id{0};
  std::atomic<bool> is_over{false};
  OsThreads threads;
  threads.Start([&] {
    ThreadSignal::AdmitHere();
    id = gettid();
    ComputeUntil(is_over);
  });
  AwaitTrue([&] { return id != 0; });
  for (int i = 0; i < Rounds(1000); ++i) {
    const std::optional<StackSample> sample = StackSample::Take(id, seconds(10));
    ASSERT_TRUE(sample.has_value());
    EXPECT_EQ(sample->id, 0);
  }
  // Most samples find it there; the first instants of a thread belong to others.
  bool is_named = false;
  for (int i = 0; i < 1000 && !is_named; ++i) {
    const std::optional<StackSample> sample = StackSample::Take(id, seconds(10));
    ASSERT_TRUE(sample.has_value());
    const std::vector<std::string> names = NamesOf(sample->backtrace);
    is_named = std::find(names.begin(), names.end(), "bobbin::test::ComputeUntil()") != names.end();
  }
  EXPECT_TRUE(is_named);
  is_over = true;
}

TEST(StackSampleTest, AVirtualThreadThatRunsIsNamed) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    std::atomic<pid_t> id{0};
    std::atomic<bool> is_over{false};
    VirtualThread busy = runtime.Spawn({.name = "busy one"}, [&] {
      id = gettid();
      ComputeUntil(is_over);
    });
    AwaitTrue([&] { return id != 0; });
    const std::optional<StackSample> sample = StackSample::Take(id, seconds(10));
    ASSERT_TRUE(sample.has_value());
    EXPECT_EQ(sample->role, Role::kVirtual);
    EXPECT_EQ(sample->id, busy.Id());
    EXPECT_STREQ(sample->name.data(), "busy one");
    is_over = true;
    EXPECT_OK(busy.Join());
  });
}

TEST(StackSampleTest, WhoDoesNotAnswerCostsThePatienceAndNoMore) {
  ThreadSignal::Install(SIGURG);
  std::atomic<pid_t> id{0};
  std::atomic<bool> is_over{false};
  OsThreads threads;
  threads.Start([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    id = gettid();
    ComputeUntil(is_over);
    // Lets in what has come too late: it finds no question.
    ThreadSignal::AdmitHere();
  });
  AwaitTrue([&] { return id != 0; });
  EXPECT_FALSE(StackSample::Take(id, milliseconds(20)).has_value());
  EXPECT_FALSE(StackSample::Take(id, milliseconds(0)).has_value());
  is_over = true;
  threads.Join();
  // Nor does one that has gone.
  EXPECT_FALSE(StackSample::Take(id, seconds(10)).has_value());
}

// Askers that meet, and give up at any instant.
TEST(StackSampleTest, AnswersAndGivingUpRace) {
  ThreadSignal::Install(SIGURG);
  constexpr int kAsked = 2;
  std::atomic<pid_t> ids[kAsked] = {};
  std::atomic<bool> is_over{false};
  OsThreads asked;
  for (std::atomic<pid_t>& id : ids) {
    asked.Start([&] {
      ThreadSignal::AdmitHere();
      id = gettid();
      ComputeUntil(is_over);
    });
    AwaitTrue([&] { return id != 0; });
  }
  OsThreads askers;
  for (int asker = 0; asker < 2; ++asker) {
    askers.Start([&, asker] {
      Random random(static_cast<uint64_t>(asker) + 1);
      for (int i = 0; i < Rounds(4000); ++i) {
        const pid_t id = ids[random.Below(kAsked)];
        const auto patience = std::chrono::microseconds(random.Below(60));
        if (const std::optional<StackSample> sample = StackSample::Take(id, patience)) {
          EXPECT_FALSE(sample->backtrace.empty());
        }
      }
    });
  }
  askers.Join();
  EXPECT_TRUE(StackSample::Take(ids[0], seconds(10)).has_value());
  is_over = true;
}

std::atomic<int> signals_before{0};

TEST(StackSampleTest, SignalsThatAreNotOursGoToTheHandlerBefore) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++signals_before; };
  ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
  ThreadSignal::Install(SIGUSR2);
  ASSERT_EQ(raise(SIGUSR2), 0);
  EXPECT_EQ(signals_before, 1);
  EXPECT_TRUE(StackSample::Take(gettid(), seconds(10)).has_value());
  EXPECT_EQ(signals_before, 1);
  ThreadSignal::Install(SIGURG);
}

}  // namespace
}  // namespace bobbin::test
