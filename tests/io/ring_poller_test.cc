// SPDX-License-Identifier: Apache-2.0

#include "io/src/ring_poller.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "io/src/uring_constants.h"
#include "tests/io/io_test.h"
#include "tests/io/traffic.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;

// --- Full queues

BOBBIN_RING_TEST(RingPollerTest, AFullSubmissionQueueLosesNothing, {.submission_entries = 4}) {
  EXPECT_OK(ManyPingPongs(kUnderSanitizer ? 100 : 500, Rounds(20)));
  EXPECT_GT(runtime().Statistics().poller.early_submits, 0);
}

BOBBIN_RING_TEST(RingPollerTest, AnOverflowingCompletionQueueLosesNothing,
                 {.submission_entries = 4, .completion_entries = 16}) {
  EXPECT_OK(ManyPingPongs(kUnderSanitizer ? 100 : 500, Rounds(20)));
  WakeAllAtOnce(kUnderSanitizer ? 200 : 1000);
  EXPECT_GT(runtime().Statistics().poller.overflows, 0);
  EXPECT_THAT(runtime().Statistics().Text(), testing::ContainsRegex("scarce: .* overflows"));
}

BOBBIN_RING_TEST(RingPollerTest, AnOverflowDoesNotDeafenAListener,
                 {.submission_entries = 4, .completion_entries = 16}) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const int connections = 300;
  VirtualThread server = Spawn([&]() -> absl::Status {
    for (int i = 0; i < connections; ++i) BOBBIN_RETURN_IF_ERROR(listener->Accept().status());
    return absl::OkStatus();
  });
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < connections; ++i) {
    clients.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream stream,
                              io::TcpStream::Connect(listener->local_address()));
      std::array<std::byte, 1> buffer;
      return stream.Read(buffer).status();
    });
  }
  EXPECT_OK(clients.Wait());
  EXPECT_OK(server.Join());
}

BOBBIN_RING_TEST(RingPollerTest, CancelsFindRoomInAFullQueue,
                 {.submission_entries = 4, .completion_entries = 16}) {
  for (int round = 0; round < Rounds(10); ++round) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 100; ++i) pairs.push_back(MakeLocalPair());
    TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
    std::atomic<int> expired{0};
    for (Pair& pair : pairs) {
      group.Spawn([&] {
        DeadlineScope scope(milliseconds(2));
        std::array<std::byte, 1> buffer;
        if (absl::IsDeadlineExceeded(pair.left.Read(buffer).status())) ++expired;
      });
    }
    EXPECT_OK(group.Wait());
    EXPECT_EQ(expired, 100);
  }
}

// --- Waking

TEST(RingPollerTest, ADoorbellWakesASleepingCarrier) {
  for (const int carriers : {1, 2, 4}) {
    WithRuntime({.carriers = carriers, .poller = io::UringPoller({.forces_eventfd_wake = true})},
                [](Runtime& runtime) { WakeFromOutside(runtime, Rounds(2000)); });
  }
}

BOBBIN_RING_TEST(RingPollerTest, TheDoorbellRingsWhileQueuesOverflow,
                 {.submission_entries = 4, .completion_entries = 16, .forces_eventfd_wake = true}) {
  EXPECT_OK(ManyPingPongs(100, Rounds(50)));
}

// --- Idling

// How many threads of the whole machine the kernel counts as waiting for a disk.
int BlockedOnDisk() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    int count = 0;
    if (word == "procs_blocked" && file >> count) return count;
  }
  return 0;
}

// An idle server must not look like one that waits for its disk.
TEST(RingPollerTest, IdleCarriersAreIdleAndNotInIowait) {
  io_uring ring{};
  ASSERT_EQ(io_uring_queue_init(4, &ring, 0), 0);
  const bool is_told_apart = (ring.features & io::internal::kFeatureNoIowait) != 0;
  io_uring_queue_exit(&ring);
  if (!is_told_apart) GTEST_SKIP() << "before Linux 6.15 whoever waits in a ring is in iowait";
  // More than ever wait for a disk at once, elsewhere.
  constexpr int kCarriers = 100;
  WithRuntime({.carriers = kCarriers,
               .poller = io::UringPoller({.submission_entries = 4, .completion_entries = 16})},
              [](Runtime& runtime) {
                // With an operation in the ring: a ring without any is never in iowait.
                std::vector<Pair> pairs(kCarriers);
                std::vector<VirtualThread> readers;
                for (Pair& pair : pairs) {
                  pair = MakeLocalPair();
                  readers.push_back(runtime.Spawn({.placement = Placement::kSpread}, [&pair] {
                    std::array<std::byte, 1> byte;
                    return pair.left.Read(byte).status();
                  }));
                }
                AwaitTrue([&] { return runtime.Statistics().in_flight >= kCarriers; });
                // For longer than they would all be awake at once.
                for (int looks = 0; looks < 100; ++looks) {
                  if (BlockedOnDisk() >= kCarriers / 2) looks = 0;
                  std::this_thread::sleep_for(milliseconds(1));
                }
                for (VirtualThread& reader : readers) reader.Cancel();
                for (VirtualThread& reader : readers) {
                  EXPECT_THAT(reader.Join(), StatusIs(kCancelled));
                }
              });
}

// --- Shutdown

TEST(RingPollerTest, ShutdownEndsParkedReadersWithTinyQueuesAndADoorbell) {
  ShutDownWithParked(
      200, Backend::kRing,
      {.submission_entries = 4, .completion_entries = 16, .forces_eventfd_wake = true});
}

}  // namespace
}  // namespace bobbin::test
