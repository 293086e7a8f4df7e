// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of bobbin_bench on OS threads and what the standard library has for them.

#include <sched.h>

#include <condition_variable>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "bench/peers/measure.h"

namespace bobbin::bench::peers {
namespace {

// `threads` of them share `operations`; each is told how many it has.
template <typename Part>
void Share(int threads, int64_t operations, Part part) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([part, mine = operations / threads + 1] { part(mine); });
  }
  for (std::thread& thread : all) thread.join();
}

double Yield(int threads) {
  return Measure([threads](int64_t operations) {
    Share(threads, operations, [](int64_t mine) {
      while (mine-- > 0) sched_yield();
    });
  });
}

double SemaphorePingPong() {
  return Measure([](int64_t operations) {
    std::binary_semaphore ping(0);
    std::binary_semaphore pong(0);
    std::thread other([&] {
      for (int64_t i = 0; i < operations; ++i) {
        ping.acquire();
        pong.release();
      }
    });
    for (int64_t i = 0; i < operations; ++i) {
      ping.release();
      pong.acquire();
    }
    other.join();
  });
}

// A channel of one place.
class Channel {
 public:
  void Send(int value) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !is_full_; });
    value_ = value;
    is_full_ = true;
    changed_.notify_one();
  }
  int Receive() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_full_; });
    is_full_ = false;
    changed_.notify_one();
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_full_ = false;
  int value_ = 0;
};

double ChannelPingPong() {
  return Measure([](int64_t operations) {
    Channel there;
    Channel back;
    std::thread other([&] {
      for (int64_t i = 0; i < operations; ++i) back.Send(there.Receive());
    });
    for (int64_t i = 0; i < operations; ++i) {
      there.Send(1);
      back.Receive();
    }
    other.join();
  });
}

double SpawnJoinSequential() {
  return Measure([](int64_t operations) {
    while (operations-- > 0) std::thread([] {}).join();
  });
}

double SpawnJoinBatch() {
  return Measure([](int64_t operations) {
    std::vector<std::thread> batch;
    while (operations > 0) {
      for (; operations > 0 && batch.size() < 1000; --operations) batch.emplace_back([] {});
      for (std::thread& thread : batch) thread.join();
      batch.clear();
    }
  });
}

double MutexUncontended() {
  return Measure([](int64_t operations) {
    std::mutex mutex;
    while (operations-- > 0) std::lock_guard<std::mutex> lock(mutex);
  });
}

template <typename Section>
double MutexContended(Section section) {
  return Measure([section](int64_t operations) {
    std::mutex mutex;
    Share(64, operations, [&mutex, section](int64_t mine) {
      while (mine-- > 0) {
        std::lock_guard<std::mutex> lock(mutex);
        section();
      }
    });
  });
}

}  // namespace
}  // namespace bobbin::bench::peers

int main(int argc, char** argv) {
  using namespace bobbin::bench::peers;
  return Main(
      argc, argv,
      {{"Yield/2", [] { return Yield(2); }},
       {"Semaphore/PingPong", SemaphorePingPong},
       {"Channel/PingPong", ChannelPingPong},
       {"SpawnJoin/Sequential", SpawnJoinSequential},
       {"SpawnJoin/Batch1000", SpawnJoinBatch},
       {"Mutex/Uncontended", MutexUncontended},
       {"Mutex/64Threads", [] { return MutexContended([] {}); }},
       {"Mutex/64ThreadsYieldInside", [] { return MutexContended([] { sched_yield(); }); }}});
}
