// SPDX-License-Identifier: Apache-2.0
//
// Once, beside std::call_once. One iteration is one call after the first.

#include <mutex>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/once.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

void CallWhenDone(benchmark::State& state) {
  OnVirtualThread([&state] {
    Once once;
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(once.Call([] {}).ok(), "it cannot fail");
    }
  });
}
BENCHMARK(CallWhenDone)->Name("Once/Done");

void CallOnceWhenDone(benchmark::State& state) {
  OnVirtualThread([&state] {
    std::once_flag once;
    for ([[maybe_unused]] auto _ : state) std::call_once(once, [] {});
  });
}
BENCHMARK(CallOnceWhenDone)->Name("Once/Done/std");

}  // namespace
}  // namespace bobbin::bench
