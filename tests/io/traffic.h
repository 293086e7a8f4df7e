// SPDX-License-Identifier: Apache-2.0
//
// Traffic: many virtual threads that talk to each other, for tests of pollers.
//
//   Called from   virtual threads, unless said otherwise.
//   Suspends      all of them.

#ifndef BOBBIN_TESTS_IO_TRAFFIC_H_
#define BOBBIN_TESTS_IO_TRAFFIC_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"

namespace bobbin::test {

// Sends `rounds` bytes to and fro.
inline absl::Status PingPong(Pair& pair, int rounds) {
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([&]() -> absl::Status {
    std::array<std::byte, 1> byte{};
    for (int i = 0; i < rounds; ++i) {
      BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(byte));
      BOBBIN_RETURN_IF_ERROR(pair.left.ReadExact(byte));
      if (byte[0] != PatternAt(static_cast<size_t>(i))) return absl::DataLossError("wrong byte");
    }
    return absl::OkStatus();
  });
  group.Spawn([&]() -> absl::Status {
    for (int i = 0; i < rounds; ++i) {
      std::array<std::byte, 1> byte{};
      BOBBIN_RETURN_IF_ERROR(pair.right.ReadExact(byte));
      byte[0] = PatternAt(static_cast<size_t>(i));
      BOBBIN_RETURN_IF_ERROR(pair.right.WriteAll(byte));
    }
    return absl::OkStatus();
  });
  return group.Wait();
}

inline absl::Status ManyPingPongs(int pairs, int rounds) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < pairs; ++i) {
    group.Spawn([rounds] {
      Pair pair = MakeLocalPair();
      return PingPong(pair, rounds);
    });
  }
  return group.Wait();
}

// Readers that all wait, then all get something at once.
inline void WakeAllAtOnce(int readers) {
  std::vector<Pair> pairs;
  for (int i = 0; i < readers; ++i) pairs.push_back(MakeLocalPair());
  std::vector<WaitProbe> probes(pairs.size());
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < pairs.size(); ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      EXPECT_EQ(ReadText(pairs[i].left, 1), "x");
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  for (Pair& pair : pairs) EXPECT_OK(pair.right.WriteAll(Bytes("x")));
  EXPECT_OK(group.Wait());
}

// From a foreign thread: a carrier that sleeps for long must notice work from elsewhere at once.
inline void WakeFromOutside(Runtime& runtime, int rounds) {
  VirtualThread sleeper = runtime.Spawn([] { return SleepFor(std::chrono::seconds(3600)); });
  for (int i = 0; i < rounds; ++i) {
    const MonotonicTime begun = MonotonicNow();
    EXPECT_OK(runtime
                  .Spawn({.placement = Placement::kSpread},
                         [] { return SleepFor(std::chrono::microseconds(500)); })
                  .Join());
    EXPECT_LT(MonotonicNow() - begun, std::chrono::seconds(2));
  }
  sleeper.Cancel();
  EXPECT_THAT(sleeper.Join(), StatusIs(kCancelled));
}

// From a foreign thread: shuts runtimes down in which so many readers are parked, and an acceptor.
inline void ShutDownWithParked(int pairs, Backend backend, const io::UringOptions& options = {}) {
  const size_t readers = static_cast<size_t>(pairs) * 2;
  std::vector<Pair> streams;
  for (int i = 0; i < pairs; ++i) streams.push_back(MakeLocalPair());
  std::atomic<size_t> cancelled{0};
  for (const int carriers : {1, 2, 4}) {
    cancelled = 0;
    Runtime runtime({.carriers = carriers, .poller = MakePollers(backend, options)});
    io::TcpListener listener = *io::TcpListener::Bind("127.0.0.1:0");
    runtime.Spawn([&] { return listener.Accept().status(); }).Detach();
    for (Pair& pair : streams) {
      for (io::TcpStream* const end : {&pair.left, &pair.right}) {
        runtime
            .Spawn({.placement = Placement::kSpread},
                   [&cancelled, end] {
                     std::array<std::byte, 16> buffer;
                     if (absl::IsCancelled(end->Read(buffer).status())) ++cancelled;
                   })
            .Detach();
      }
    }
    AwaitTrue([&] { return runtime.Statistics().started == readers + 1; });
    EXPECT_OK(runtime.Shutdown());
    EXPECT_EQ(cancelled, readers);
    EXPECT_EQ(runtime.Statistics().in_flight, 0u);
  }
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_TRAFFIC_H_
