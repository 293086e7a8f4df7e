// SPDX-License-Identifier: Apache-2.0
//
// Cancellation: a request that every wait sees, and a shield for what must be finished.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

using namespace std::chrono_literals;

namespace {

// Where the heart beats.
struct Monitor {
  bobbin::Event first_beat;
  int beats = 0;
  void Beat() {
    ++beats;
    first_beat.Set();
  }
};

// Something with an end that takes a while.
struct Journal {
  std::string text;
  absl::Status Flush() { return bobbin::SleepFor(1h); }
  absl::Status Close() {
    BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(1ms));
    text += "closed";
    return absl::OkStatus();
  }
};

// [beat]
absl::Status Beat(Monitor& monitor) {
  while (true) {
    monitor.Beat();
    BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(10ms));  // CANCELLED as soon as somebody asks.
  }
}
// [/beat]

// [compute]
absl::StatusOr<uint64_t> CountPrimes(uint64_t below) {
  uint64_t count = 0;
  for (uint64_t n = 2; n < below; ++n) {
    bool is_prime = true;
    for (uint64_t d = 2; d * d <= n && is_prime; ++d) is_prime = n % d != 0;
    if (is_prime) ++count;
    if (n % 1024 == 0) {
      BOBBIN_RETURN_IF_ERROR(bobbin::CheckStop());  // What a wait would answer here.
      bobbin::YieldIfDue();                         // Nobody takes the carrier away from a loop.
    }
  }
  return count;
}
// [/compute]

// [shield]
absl::Status Finish(Journal& journal) {
  absl::Status result = journal.Flush();  // May be cut short.
  bobbin::CancelShield shield;            // Closing may not,
  bobbin::DeadlineScope at_most(500ms);   // but it must not hang either.
  result.Update(journal.Close());
  return result;
}
// [/shield]

absl::Status Main() {
  Monitor monitor;
  // [cancel]
  bobbin::VirtualThread heart = bobbin::Spawn({.name = "heart"}, [&] { return Beat(monitor); });
  BOBBIN_RETURN_IF_ERROR(monitor.first_beat.Wait());
  heart.Cancel();                           // A request. It does not wait.
  const absl::Status ended = heart.Join();  // CANCELLED: it stopped because it was asked to.
  // [/cancel]
  fmt::print("{} after {} beats\n", ended.ToString(), monitor.beats);
  if (!absl::IsCancelled(ended)) return absl::InternalError("the heart must be cancelled");

  BOBBIN_ASSIGN_OR_RETURN(const uint64_t primes, CountPrimes(10'000));
  fmt::print("{} primes\n", primes);
  if (primes != 1229) return absl::InternalError("there are 1229 primes below 10,000");
  bobbin::VirtualThread counter =
      bobbin::Spawn([] { return CountPrimes(uint64_t{1} << 62).status(); });
  counter.Cancel();
  if (!absl::IsCancelled(counter.Join())) return absl::InternalError("the loop must stop");

  Journal journal;
  bobbin::VirtualThread writer = bobbin::Spawn([&] { return Finish(journal); });
  writer.Cancel();
  const absl::Status finished = writer.Join();
  fmt::print("journal: {}, {}\n", journal.text, finished.ToString());
  return absl::IsCancelled(finished) && journal.text == "closed"
             ? absl::OkStatus()
             : absl::InternalError("the journal must be closed");
}

}  // namespace

int main() { return bobbin::Run(Main); }
