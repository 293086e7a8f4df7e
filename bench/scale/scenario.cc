// SPDX-License-Identifier: Apache-2.0

#include "bench/scale/scenario.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/dump.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "bench/scale/process_memory.h"

namespace bobbin::bench {
namespace {

double ClockNs(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Real and CPU time, summed up over the stretches between Start and Stop.
class Stopwatch {
 public:
  void Start() {
    wall_start_ = ClockNs(CLOCK_MONOTONIC);
    cpu_start_ = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  }
  // Returns how long this stretch was.
  double Stop() {
    const double stretch = ClockNs(CLOCK_MONOTONIC) - wall_start_;
    wall_ns_ += stretch;
    cpu_ns_ += ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_;
    return stretch;
  }
  double wall_ms() const { return wall_ns_ / 1e6; }
  double cpu_ms() const { return cpu_ns_ / 1e6; }

 private:
  double wall_start_ = 0;
  double cpu_start_ = 0;
  double wall_ns_ = 0;
  double cpu_ns_ = 0;
};

// Lets the last of many that arrive tell the one that waits.
class Arrivals {
 public:
  explicit Arrivals(size_t expected) : missing_(expected) {}

  void Arrive() {
    // relaxed: the event orders what the waiting one reads.
    if (missing_.fetch_sub(1, std::memory_order_relaxed) == 1) all_.Set();
  }
  absl::Status AwaitAll() { return all_.Wait(); }

 private:
  std::atomic<size_t> missing_;  // Counted down by those who arrive.
  Event all_;
};

// One run of one scenario, on a virtual thread.
class Scenario {
 public:
  explicit Scenario(const ScenarioOptions& options)
      : threads_(options.threads), count_(static_cast<double>(options.threads)) {}

  absl::StatusOr<ScenarioResult> Run(const ScenarioOptions& options) {
    const auto round = [&] {
      if (options.scenario == "park") return Park();
      if (options.scenario == "queue") return Queue();
      if (options.scenario == "sleep") return Sleep();
      if (options.scenario == "dump") return DumpAll();
      return Skynet();
    };
    for (size_t i = 0; i < options.rounds; ++i) {
      BOBBIN_ASSIGN_OR_RETURN(RoundResult measured, round());
      result_.rounds.push_back(measured);
    }
    result_.peak_resident_bytes = ProcessMemory::Read().peak_resident_bytes;
    return std::move(result_);
  }

 private:
  // As many as there are to be, parked until they are released.
  class Crowd {
   public:
    explicit Crowd(size_t threads) : parked_(threads) {
      for (size_t i = 0; i < threads; ++i) {
        group_.Spawn([this]() -> absl::Status {
          parked_.Arrive();
          return release_.Wait();
        });
      }
    }
    absl::Status AwaitParked() { return parked_.AwaitAll(); }
    absl::Status Release() {
      release_.Set();
      return group_.Wait();
    }

   private:
    Arrivals parked_;
    Event release_;
    TaskGroup group_;
  };

  absl::StatusOr<RoundResult> Park() {
    Stopwatch watch;
    watch.Start();
    Crowd crowd(threads_);
    BOBBIN_RETURN_IF_ERROR(crowd.AwaitParked());
    const double spawn_ns = watch.Stop();
    TakeMemory();

    watch.Start();
    BOBBIN_RETURN_IF_ERROR(crowd.Release());
    return Round(watch, spawn_ns, watch.Stop());
  }

  absl::StatusOr<RoundResult> Queue() {
    Stopwatch watch;
    TaskGroup group;

    watch.Start();
    for (size_t i = 0; i < threads_; ++i) group.Spawn([] {});
    const double spawn_ns = watch.Stop();
    TakeMemory();

    watch.Start();
    BOBBIN_RETURN_IF_ERROR(group.Wait());
    return Round(watch, spawn_ns, watch.Stop());
  }

  absl::StatusOr<RoundResult> Sleep() {
    constexpr std::chrono::seconds kSleep(1);
    Stopwatch watch;
    Arrivals asleep(threads_);
    TaskGroup group;

    watch.Start();
    for (size_t i = 0; i < threads_; ++i) {
      group.Spawn([&asleep, kSleep] {
        asleep.Arrive();
        return SleepFor(kSleep);
      });
    }
    BOBBIN_RETURN_IF_ERROR(asleep.AwaitAll());
    const double spawn_ns = watch.Stop();
    TakeMemory();

    watch.Start();
    BOBBIN_RETURN_IF_ERROR(group.Wait());
    const double slept_ns = std::chrono::duration<double, std::nano>(kSleep).count();
    return Round(watch, spawn_ns, std::max(0.0, watch.Stop() - slept_ns));
  }

  absl::StatusOr<RoundResult> Skynet() {
    Stopwatch watch;
    watch.Start();
    const uint64_t sum = SumOfLeaves(0, threads_);
    const double spawn_ns = watch.Stop();
    TakeMemory();
    if (sum != uint64_t{threads_} * (threads_ - 1) / 2) {
      return absl::InternalError("skynet: the leaves add up to " + std::to_string(sum));
    }
    return Round(watch, spawn_ns, 0);
  }

  absl::StatusOr<RoundResult> DumpAll() {
    Stopwatch watch;
    watch.Start();
    Crowd crowd(threads_);
    BOBBIN_RETURN_IF_ERROR(crowd.AwaitParked());
    const double spawn_ns = watch.Stop();
    TakeMemory();

    std::atomic<bool> is_over{false};
    std::atomic<double> gap_ns{0};
    VirtualThread traffic = bobbin::Spawn({.name = "traffic"}, [&] {
      double last = ClockNs(CLOCK_MONOTONIC);
      while (!is_over) {
        Yield();
        const double now = ClockNs(CLOCK_MONOTONIC);
        if (now - last > gap_ns) gap_ns = now - last;
        last = now;
      }
    });
    BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::seconds(1)));
    const double gap_before = gap_ns.exchange(0);
    watch.Start();
    const size_t bytes = Dump({.budget = std::chrono::minutes(1)}).size();
    const double dump_ns = watch.Stop();
    const double gap_during = gap_ns;
    is_over = true;
    BOBBIN_RETURN_IF_ERROR(traffic.Join());
    if (bytes < threads_) return absl::InternalError("dump: it does not list all threads");

    watch.Start();
    BOBBIN_RETURN_IF_ERROR(crowd.Release());
    RoundResult result = Round(watch, spawn_ns, watch.Stop());
    result.dump_ms = dump_ns / 1e6;
    result.gap_before_ms = gap_before / 1e6;
    result.gap_during_ms = gap_during / 1e6;
    return result;
  }

  // Adds up the numbers of `count` leaves, the first of which is `first`.
  static uint64_t SumOfLeaves(uint64_t first, uint64_t count) {
    if (count == 1) return first;
    constexpr uint64_t kChildren = 10;
    std::array<uint64_t, kChildren> sums = {};
    {
      TaskGroup children;
      for (uint64_t i = 0; i < kChildren; ++i) {
        children.Spawn([&sums, i, first, count] {
          sums[i] = SumOfLeaves(first + i * (count / kChildren), count / kChildren);
        });
      }
      // A failure would show in the sum.
      static_cast<void>(children.Wait());
    }
    uint64_t total = 0;
    for (uint64_t sum : sums) total += sum;
    return total;
  }

  RoundResult Round(const Stopwatch& watch, double spawn_ns, double release_ns) const {
    return {spawn_ns / count_, release_ns / count_, watch.wall_ms(), watch.cpu_ms()};
  }

  void TakeMemory() {
    const ProcessMemory now = ProcessMemory::Read();
    const auto growth = [](size_t from, size_t to) { return to > from ? to - from : 0; };
    result_.bytes_per_thread = std::max(
        result_.bytes_per_thread,
        static_cast<double>(growth(before_.occupied_bytes(), now.occupied_bytes())) / count_);
    result_.mappings = std::max(result_.mappings, growth(before_.mappings, now.mappings));
    result_.mappings_total = std::max(result_.mappings_total, now.mappings);
  }

  const size_t threads_;
  const double count_;
  const ProcessMemory before_ = ProcessMemory::Read();
  ScenarioResult result_;
};

}  // namespace

absl::StatusOr<ScenarioResult> RunScenario(const ScenarioOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(
      const std::unique_ptr<Runtime> runtime,
      Runtime::Create({.carriers = options.carriers, .stack_bytes = options.stack_bytes}));
  absl::StatusOr<ScenarioResult> result;
  BOBBIN_RETURN_IF_ERROR(runtime->Spawn([&] { result = Scenario(options).Run(options); }).Join());
  BOBBIN_RETURN_IF_ERROR(runtime->Shutdown());
  return result;
}

}  // namespace bobbin::bench
