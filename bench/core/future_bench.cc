// SPDX-License-Identifier: Apache-2.0
//
// Promise and Future against the standard library's: a result that is set and got by one thread,
// which is what the pair itself costs. And handed from one virtual thread to another that waits,
// against the same through a channel: one iteration is a new pair, a wait and a wake.

#include <future>
#include <utility>

#include "benchmark/benchmark.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/future.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

void StandardSetThenGet(benchmark::State& state) {
  for (auto _ : state) {
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    promise.set_value(1);
    benchmark::DoNotOptimize(future.get());
  }
}
BENCHMARK(StandardSetThenGet)->Name("Future/StandardSetThenGet");

void SetThenGet(benchmark::State& state) {
  OnVirtualThread([&state] {
    for (auto _ : state) {
      auto [promise, future] = MakePromise<int>();
      promise.Set(1);
      benchmark::DoNotOptimize(future.Get());
    }
  });
}
BENCHMARK(SetThenGet)->Name("Future/SetThenGet");

void ThenSet(benchmark::State& state) {
  OnVirtualThread([&state] {
    for (auto _ : state) {
      auto [promise, future] = MakePromise<int>();
      Future<int> next = std::move(future).Then([](int value) { return value + 1; });
      promise.Set(1);
      benchmark::DoNotOptimize(next.Get());
    }
  });
}
BENCHMARK(ThenSet)->Name("Future/ThenSetGet");

// Two threads take turns: one makes a pair, hands its promise over a channel, and waits.
template <typename Make>
void Waited(benchmark::State& state, Make make) {
  OnVirtualThread([&state, make] {
    using Pair = decltype(make());
    auto [requests, inbox] = MakeChannel<typename Pair::first_type>({.capacity = 1});
    VirtualThread server = Spawn([inbox = std::move(inbox)] {
      for (typename Pair::first_type& answer : inbox) answer();
    });
    for (auto _ : state) {
      Pair pair = make();
      BOBBIN_CHECK(requests.Send(std::move(pair.first)).ok(), "nobody closes it");
      pair.second();
    }
    requests.Close();
    BOBBIN_CHECK(server.Join().ok(), "it cannot fail");
  });
}

// What the server calls, and what the client then waits with.
template <typename Answer, typename Await>
struct Call {
  using first_type = Answer;
  Answer first;
  Await second;
};
template <typename Answer, typename Await>
Call(Answer, Await) -> Call<Answer, Await>;

void WaitedFuture(benchmark::State& state) {
  Waited(state, [] {
    auto [promise, future] = MakePromise<int>();
    return Call{
        [promise = std::move(promise)]() mutable { promise.Set(1); },
        [future = std::move(future)]() mutable { BOBBIN_CHECK(future.Get().ok(), "it is set"); }};
  });
}
BENCHMARK(WaitedFuture)->Name("Future/Waited");

void WaitedChannel(benchmark::State& state) {
  Waited(state, [] {
    auto [sender, receiver] = MakeChannel<int>({.capacity = 1});
    return Call{
        [sender = std::move(sender)] { BOBBIN_CHECK(sender.Send(1).ok(), "there is room"); },
        [receiver = std::move(receiver)] { BOBBIN_CHECK(receiver.Receive().ok(), "it is sent"); }};
  });
}
BENCHMARK(WaitedChannel)->Name("Future/WaitedChannel");

}  // namespace
}  // namespace bobbin::bench
