// SPDX-License-Identifier: Apache-2.0
//
// Poller: where a carrier sleeps, and how it is woken.
//
// One object a carrier. A runtime without I/O sleeps on a futex; bobbin::io brings pollers that
// sleep in the kernel's completion or readiness interface. Start, Poll and Stop run on the
// carrier's own OS thread and own stack; Wake and Statistics come from any thread.
//
// Wakes are levels, not edges: a Wake that comes before the Poll it is meant for makes that Poll
// return at once. The carrier calls for a Wake only when it has announced that it sleeps, so a
// poller need not suppress needless ones.
//
//   Called from   as above.
//   Suspends      Poll blocks the OS thread, if it is told to wait.
//   Cost          a Poll without anything to do must cost no system call.

#ifndef BOBBIN_SCHED_POLLER_H_
#define BOBBIN_SCHED_POLLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/deadline.h>

namespace bobbin {

// What a poller did for want of something, ever. All of it costs time and nothing else; what grows
// and grows says what there should be more of.
struct PollerStatistics {
  uint64_t early_submits = 0;  // System calls in the middle of a turn, because a queue was full...
  uint64_t deferred = 0;       // ...and operations for which they made no room.
  uint64_t overflows = 0;      // Looks that found completions for which their queue had no room.
  uint64_t memory_pauses = 0;  // Sleeps of a millisecond, because the kernel had no memory.
  uint64_t accept_pauses = 0;  // Accepts that stood still for want of descriptors or memory.
  uint64_t small_queues = 0;   // Carriers whose queues are smaller than asked for.
  uint64_t copied_sends = 0;   // Sends that were to do without a copy, and were copied.

  PollerStatistics& operator+=(const PollerStatistics& other) {
    early_submits += other.early_submits;
    deferred += other.deferred;
    overflows += other.overflows;
    memory_pauses += other.memory_pauses;
    accept_pauses += other.accept_pauses;
    small_queues += other.small_queues;
    copied_sends += other.copied_sends;
    return *this;
  }
  bool operator==(const PollerStatistics&) const = default;
};

class Poller {
 public:
  virtual ~Poller() = default;

  // Called once on the carrier's OS thread, before anything else there. A failure stops the
  // runtime's start with this status.
  virtual absl::Status Start() { return absl::OkStatus(); }

  // Submits what was prepared, collects what has completed and makes those threads ready, without
  // waiting. Must be cheap when nothing is outstanding.
  virtual void Poll() noexcept = 0;

  // The same, but sleeps until a completion, a Wake, or `until`.
  virtual void PollUntil(Deadline until) noexcept = 0;

  // Ends the current or the next PollUntil.
  virtual void Wake() noexcept = 0;

  // How many operations are in the kernel's hands; the carrier does not end while there are any.
  // Where there are none, nobody outside the process can make a virtual thread ready.
  virtual size_t in_flight() const noexcept { return 0; }

  // Called from: any thread.
  virtual PollerStatistics Statistics() const noexcept { return {}; }

  // Asks the kernel to give up all of them. Called on the carrier at shutdown, once all virtual
  // threads have ended.
  virtual void CancelAll() noexcept {}

  // Called last on the carrier's OS thread.
  virtual void Stop() noexcept {}

  // "futex", "io_uring", "epoll": for people.
  virtual std::string_view name() const noexcept = 0;
  // Why it is this one, if another one was preferred: for people.
  virtual std::string_view reason() const noexcept { return {}; }
};

// Makes the poller of each carrier. Empty: the futex poller.
using PollerFactory = absl::AnyInvocable<std::unique_ptr<Poller>() const>;

}  // namespace bobbin

#endif  // BOBBIN_SCHED_POLLER_H_
