// SPDX-License-Identifier: Apache-2.0

#include "sched/src/task_deque.h"

#include <atomic>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/os_threads.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace bobbin::internal {
namespace {

TEST(TaskDequeTest, TheOwnerTakesTheNewestAndAThiefTheOldest) {
  for (const bool is_shared : {false, true}) {
    TaskDeque deque(is_shared);
    std::vector<std::unique_ptr<Task>> tasks;
    for (int i = 0; i < 5; ++i) tasks.push_back(std::make_unique<Task>());
    for (const auto& task : tasks) deque.Push(*task);
    EXPECT_EQ(deque.size(), 5u);
    EXPECT_EQ(deque.TakeNewest(), tasks[4].get());
    EXPECT_EQ(deque.Steal(), tasks[0].get());
    EXPECT_EQ(deque.TakeOldest(), tasks[1].get());
    EXPECT_EQ(deque.TakeNewest(), tasks[3].get());
    EXPECT_EQ(deque.TakeNewest(), tasks[2].get());
    EXPECT_EQ(deque.TakeNewest(), nullptr);
    EXPECT_EQ(deque.Steal(), nullptr);
    EXPECT_TRUE(deque.IsEmptyOrdered());
  }
}

TEST(TaskDequeTest, ItGrowsAndKeepsTheOrder) {
  TaskDeque deque(true);
  constexpr int kTasks = 5000;
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(std::make_unique<Task>());
    deque.Push(*tasks.back());
  }
  for (const auto& task : tasks) ASSERT_EQ(deque.Steal(), task.get());
}

// Each task is taken exactly once, whoever takes it and however few there are.
TEST(TaskDequeTest, OwnerAndThievesTakeEachTaskExactlyOnce) {
  const int rounds = test::Rounds(200'000);
  TaskDeque deque(true);
  constexpr size_t kTasks = 64;
  std::vector<std::unique_ptr<Task>> tasks;
  for (size_t i = 0; i < kTasks; ++i) {
    tasks.push_back(std::make_unique<Task>());
    tasks.back()->Prepare(i, {});
  }
  std::vector<std::atomic<int>> is_in(kTasks);
  std::atomic<bool> is_over{false};
  std::atomic<int> doubles{0};
  std::atomic<int64_t> taken{0};
  auto take = [&](Task* task) {
    if (task == nullptr) return;
    if (is_in[task->id()].exchange(0) != 1) doubles.fetch_add(1);
    taken.fetch_add(1);
  };

  test::OsThreads thieves;
  for (int i = 0; i < 2; ++i) {
    thieves.Start([&] {
      while (!is_over.load()) take(deque.Steal());
    });
  }
  test::Random random(test::Seed());
  int64_t pushed = 0;
  for (int round = 0; round < rounds; ++round) {
    Task& task = *tasks[random.Below(kTasks)];
    int out = 0;
    if (is_in[task.id()].compare_exchange_strong(out, 1)) {
      deque.Push(task);
      ++pushed;
    }
    if (random.OneIn(2)) take(deque.TakeNewest());
    if (random.OneIn(8)) take(deque.TakeOldest());
  }
  while (Task* const task = deque.TakeNewest()) take(task);
  while (taken.load() != pushed) std::this_thread::yield();
  is_over.store(true);
  thieves.Join();
  EXPECT_EQ(doubles.load(), 0);
  EXPECT_EQ(taken.load(), pushed);
}

}  // namespace
}  // namespace bobbin::internal
