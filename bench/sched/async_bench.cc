// SPDX-License-Identifier: Apache-2.0
//
// Async: a task, from being submitted to its result, on a virtual and on a platform executor,
// against the standard library's. Executor/Submit: what the submitter of a task pays, with the pool
// busy.

#include <array>
#include <atomic>
#include <future>
#include <string_view>
#include <utility>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/sleep.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

Executor& Named(std::string_view name, ThreadKind kind) {
  absl::StatusOr<Executor*> found = CurrentExecutors().Find(name, kind);
  BOBBIN_CHECK(found.ok(), "nobody else names it");
  return **found;
}

// One at a time.
void AsyncThenGet(benchmark::State& state, ThreadKind kind) {
  OnVirtualThread([&state, kind] {
    Executor& executor = Named("bench", kind);
    for (auto _ : state) benchmark::DoNotOptimize(Async(executor, [] { return 1; }).Get());
  });
}
void Virtual(benchmark::State& state) { AsyncThenGet(state, ThreadKind::kVirtual); }
BENCHMARK(Virtual)->Name("Async/Virtual");
void Platform(benchmark::State& state) { AsyncThenGet(state, ThreadKind::kPlatform); }
BENCHMARK(Platform)->Name("Async/Platform")->UseRealTime();

// A hundred, and then their results; an iteration is one of them.
void Batch(benchmark::State& state) {
  OnVirtualThread([&state] {
    constexpr int kBatch = 100;
    Executor& executor = Named("bench", ThreadKind::kVirtual);
    std::array<Future<int>, kBatch> futures;
    while (state.KeepRunningBatch(kBatch)) {
      for (Future<int>& future : futures) future = Async(executor, [] { return 1; });
      for (Future<int>& future : futures) benchmark::DoNotOptimize(future.Get());
    }
  });
}
BENCHMARK(Batch)->Name("Async/VirtualBatch100");

// The same by a thread on each of two carriers at once, for one executor or each its own; an
// iteration is one task of one of them.
void TwoSubmitters(benchmark::State& state, std::string_view other) {
  OnVirtualThread({.carriers = 2, .pins_carriers = true}, [&state, other] {
    constexpr int kBatch = 100;
    const auto submit = [](Executor& executor) {
      std::array<Future<int>, kBatch> futures;
      for (Future<int>& future : futures) future = Async(executor, [] { return 1; });
      for (Future<int>& future : futures) benchmark::DoNotOptimize(future.Get());
    };
    Executor& one = Named("bench", ThreadKind::kVirtual);
    Executor& another = Named(other, ThreadKind::kVirtual);
    std::atomic<bool> is_over = false;
    VirtualThread submitter = SpawnOn(Side::kOtherCarrier, [&] {
      while (!is_over) submit(another);
    });
    while (state.KeepRunningBatch(kBatch)) submit(one);
    is_over = true;
    BOBBIN_CHECK(submitter.Join().ok(), "nobody stops it");
  });
}
BENCHMARK_CAPTURE(TwoSubmitters, Shared, "bench")->Name("Async/VirtualTwoCarriersShared");
BENCHMARK_CAPTURE(TwoSubmitters, Apart, "bench-too")->Name("Async/VirtualTwoCarriersApart");

void Standard(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(std::async(std::launch::async, [] { return 1; }).get());
  }
}
BENCHMARK(Standard)->Name("Async/StdAsync")->UseRealTime();

void GetReady(benchmark::State& state) {
  OnVirtualThread([&state] {
    for (auto _ : state) {
      state.PauseTiming();
      std::array<Future<int>, 1000> futures;
      for (Future<int>& future : futures) {
        auto [promise, ready] = MakePromise<int>();
        promise.Set(1);
        future = std::move(ready);
      }
      state.ResumeTiming();
      for (Future<int>& future : futures) benchmark::DoNotOptimize(future.Get());
    }
    state.SetItemsProcessed(state.iterations() * 1000);
  });
}
BENCHMARK(GetReady)->Name("Future/GetReady1000");

// The pool's threads are busy, so that a task is queued; it is run between the batches.
void SubmitToBusy(benchmark::State& state) {
  OnVirtualThread([&state] {
    constexpr int kBatch = 10'000;
    Executor& executor = Named("bench-submit", ThreadKind::kPlatform);
    for (auto _ : state) {
      state.PauseTiming();
      Event may_end;
      for (int i = 0; i < 8; ++i) {
        BOBBIN_CHECK(executor.Submit([&may_end] { return may_end.Wait(); }).ok(), "it has room");
      }
      while (executor.Statistics().queued != 0) Yield();
      state.ResumeTiming();
      for (int i = 0; i < kBatch; ++i) {
        BOBBIN_CHECK(executor.Submit([] {}).ok(), "it has room");
      }
      state.PauseTiming();
      may_end.Set();
      BOBBIN_CHECK(CurrentExecutors().AwaitIdle().ok(), "nobody stops it");
      state.ResumeTiming();
    }
    state.SetItemsProcessed(state.iterations() * kBatch);
  });
}
BENCHMARK(SubmitToBusy)->Name("Executor/Submit10000")->UseRealTime();

}  // namespace
}  // namespace bobbin::bench
