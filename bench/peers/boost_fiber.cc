// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of bobbin_bench on Boost.Fiber.
//
// One OS thread runs the library's default scheduler, which is round robin; two share the ready
// ones (`shared_work`), as in the library's own examples of several threads. Stacks come from a
// pool, which is what makes spawning fastest here.

#include <array>
#include <thread>
#include <vector>

#include <boost/fiber/algo/shared_work.hpp>
#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>

#include "bench/peers/measure.h"

namespace bobbin::bench::peers {
namespace {

namespace fibers = boost::fibers;

template <typename Body>
fibers::fiber Spawn(Body body) {
  thread_local fibers::pooled_fixedsize_stack stacks(64 * 1024);
  return fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, std::move(body));
}

// Calls `run` where a second OS thread helps.
double OnTwo(const std::function<double()>& run) {
  bool is_over = false;
  fibers::mutex mutex;
  fibers::condition_variable_any changed;
  fibers::use_scheduling_algorithm<fibers::algo::shared_work>();
  std::thread helper([&] {
    fibers::use_scheduling_algorithm<fibers::algo::shared_work>();
    std::unique_lock<fibers::mutex> lock(mutex);
    changed.wait(lock, [&] { return is_over; });
  });
  const double result = run();
  {
    std::unique_lock<fibers::mutex> lock(mutex);
    is_over = true;
    changed.notify_all();
  }
  helper.join();
  return result;
}

double Yield(int count) {
  return Measure([count](int64_t operations) {
    std::vector<fibers::fiber> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(Spawn([mine = operations / count + 1]() mutable {
        while (mine-- > 0) boost::this_fiber::yield();
      }));
    }
    for (fibers::fiber& one : all) one.join();
  });
}

class Semaphore {
 public:
  void Release() {
    std::unique_lock<fibers::mutex> lock(mutex_);
    ++permits_;
    changed_.notify_one();
  }
  void Acquire() {
    std::unique_lock<fibers::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return permits_ > 0; });
    --permits_;
  }

 private:
  fibers::mutex mutex_;
  fibers::condition_variable changed_;
  int permits_ = 0;
};

double SemaphorePingPong() {
  return Measure([](int64_t operations) {
    Semaphore ping;
    Semaphore pong;
    fibers::fiber other = Spawn([&] {
      for (int64_t i = 0; i < operations; ++i) {
        ping.Acquire();
        pong.Release();
      }
    });
    for (int64_t i = 0; i < operations; ++i) {
      ping.Release();
      pong.Acquire();
    }
    other.join();
  });
}

double ChannelPingPong() {
  return Measure([](int64_t operations) {
    fibers::buffered_channel<int> there(2);  // It holds one less.
    fibers::buffered_channel<int> back(2);
    fibers::fiber other = Spawn([&] {
      for (int64_t i = 0; i < operations; ++i) back.push(there.value_pop());
    });
    for (int64_t i = 0; i < operations; ++i) {
      there.push(1);
      back.value_pop();
    }
    other.join();
  });
}

double SpawnJoinSequential() {
  return Measure([](int64_t operations) {
    while (operations-- > 0) Spawn([] {}).join();
  });
}

double SpawnJoinBatch() {
  return Measure([](int64_t operations) {
    std::vector<fibers::fiber> batch;
    while (operations > 0) {
      for (; operations > 0 && batch.size() < 1000; --operations) batch.push_back(Spawn([] {}));
      for (fibers::fiber& one : batch) one.join();
      batch.clear();
    }
  });
}

double MutexUncontended() {
  return Measure([](int64_t operations) {
    fibers::mutex mutex;
    while (operations-- > 0) std::lock_guard<fibers::mutex> lock(mutex);
  });
}

template <typename Section>
double MutexContended(Section section) {
  return Measure([section](int64_t operations) {
    constexpr int kCount = 64;
    fibers::mutex mutex;
    std::vector<fibers::fiber> all;
    for (int i = 0; i < kCount; ++i) {
      all.push_back(Spawn([&mutex, section, mine = operations / kCount + 1]() mutable {
        while (mine-- > 0) {
          std::lock_guard<fibers::mutex> lock(mutex);
          section();
        }
      }));
    }
    for (fibers::fiber& one : all) one.join();
  });
}

uint64_t SumOfLeaves(uint64_t first, uint64_t count) {
  if (count == 1) return first;
  constexpr uint64_t kChildren = 10;
  std::array<uint64_t, kChildren> sums = {};
  std::array<fibers::fiber, kChildren> children;
  for (uint64_t i = 0; i < kChildren; ++i) {
    children[i] = Spawn([&sums, i, first, count] {
      sums[i] = SumOfLeaves(first + i * (count / kChildren), count / kChildren);
    });
  }
  for (fibers::fiber& child : children) child.join();
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

// A tree of 1,000,000 leaves; one operation is a leaf.
double Skynet() {
  constexpr int64_t kLeaves = 1'000'000;
  const auto begin = std::chrono::steady_clock::now();
  if (SumOfLeaves(0, kLeaves) != uint64_t{kLeaves} * (kLeaves - 1) / 2) std::abort();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / static_cast<double>(kLeaves);
}

}  // namespace
}  // namespace bobbin::bench::peers

int main(int argc, char** argv) {
  using namespace bobbin::bench::peers;
  const auto yield = [] { boost::this_fiber::yield(); };
  return Main(argc, argv,
              {{"Yield/2", [] { return Yield(2); }},
               {"Yield/10000", [] { return Yield(10'000); }},
               {"Semaphore/PingPong", SemaphorePingPong},
               {"Channel/PingPong", ChannelPingPong},
               {"SpawnJoin/Sequential", SpawnJoinSequential},
               {"SpawnJoin/Batch1000", SpawnJoinBatch},
               {"SpawnJoin/Batch1000/2", [] { return OnTwo(SpawnJoinBatch); }},
               {"Mutex/Uncontended", MutexUncontended},
               {"Mutex/64Threads", [] { return OnTwo([] { return MutexContended([] {}); }); }},
               {"Mutex/64ThreadsYieldInside", [yield] { return MutexContended(yield); }},
               {"Skynet/1000000", Skynet},
               {"Skynet/1000000/2", [] { return OnTwo(Skynet); }}});
}
