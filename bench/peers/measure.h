// SPDX-License-Identifier: Apache-2.0
//
// What a peer's program is: a table of benchmarks, one of which it runs and prints.
//
//   peer --list      the names, a line each
//   peer NAME        the nanoseconds that one operation of NAME takes
//
// The names are those of bobbin_bench, and so is what one operation means; see peers.py.

#ifndef BOBBIN_BENCH_PEERS_MEASURE_H_
#define BOBBIN_BENCH_PEERS_MEASURE_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace bobbin::bench::peers {

// Runs `operations` of them.
using Body = std::function<void(int64_t operations)>;

// How long one operation takes, in nanoseconds: of so many that they take a while together.
inline double Measure(const Body& body) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongEnough(200);
  for (int64_t operations = 1;; operations *= 2) {
    const Clock::time_point begin = Clock::now();
    body(operations);
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    if (taken >= kLongEnough) return taken.count() / static_cast<double>(operations);
  }
}

// The rest of main. `run` sets the runtime up for a benchmark and measures it.
inline int Main(int argc, char** argv, const std::map<std::string, std::function<double()>>& all) {
  const std::string wanted = argc == 2 ? argv[1] : "";
  if (wanted == "--list") {
    for (const auto& [name, run] : all) std::puts(name.c_str());
    return 0;
  }
  const auto found = all.find(wanted);
  if (found == all.end()) {
    std::fprintf(stderr, "%s: name one of those that --list prints\n", argv[0]);
    return 2;
  }
  std::printf("%.2f\n", found->second());
  return 0;
}

}  // namespace bobbin::bench::peers

#endif  // BOBBIN_BENCH_PEERS_MEASURE_H_
