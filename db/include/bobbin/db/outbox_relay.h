// SPDX-License-Identifier: Apache-2.0
//
// OutboxRelay: sends what is in an outbox.
//
// It claims a batch of messages for the length of a lease, has each of them sent by a function of
// the program's, and takes out those that were. As many relays as one likes, in as many processes,
// share the work: they pass over each other's batches. Keys are sent side by side, the messages of
// one key one after another. One that fails is tried again, after a pause that grows, and holds up
// its own key only; after `attempts_max` attempts, or an error that does not pass, it becomes a
// dead letter, and the next of its key goes.
//
// A relay that dies leaves its batch to the others, as soon as the lease is over. One that loses
// its database for a while goes on by itself, and tells what it has sent as long as its lease
// lasts.
//
//   Called from   Run, SendDue: virtual threads, and platform threads of a runtime; one at a time.
//                 The rest: any thread.
//   Suspends      Run and SendDue, while there is nothing to send, or something is being sent.
//   Cancellation  Run and SendDue return CANCELLED or DEADLINE_EXCEEDED. The functions that send
//   are
//                 asked to stop; what they had done is settled, the rest is given back, which takes
//                 `settle_wait_max` at most.
//   Errors        Run returns only when it is to stop; errors of the database are logged and tried
//                 again. SendDue returns them.
//   Order         see outbox.h. Of different keys: those that were added first are claimed first.
//   Lifetime      What the function uses must outlive the relay's calls. The relay must outlive
//                 them, too.
//   Cost          A batch: two statements, or three if there are keys with more than one message;
//                 and one more for each message that fails. A claim looks at the pending messages
//                 in the order of their numbers until it has enough: those of a key that is held up
//                 are passed over, at some microseconds each.
//
// Example:
//   bobbin::db::OutboxRelay relay(outbox, {}, [&](const bobbin::db::OutboxMessage& message) {
//     return broker.Publish(message.topic, message.key, message.payload);
//   });
//   bobbin::VirtualThread thread = bobbin::Spawn({.name = "relay"}, [&] { return relay.Run(); });

#ifndef BOBBIN_DB_OUTBOX_RELAY_H_
#define BOBBIN_DB_OUTBOX_RELAY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/db/backoff.h>
#include <bobbin/db/outbox.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/task_options.h>

namespace bobbin::db {

namespace internal {
class OutboxRelayCore;
}  // namespace internal

// A message on its way.
struct OutboxMessage {
  // The same whenever it is sent again: receivers know by it what they have had.
  int64_t id = 0;
  std::string topic;
  std::string key;
  std::string payload;
  absl::Time created;   // By the database's clock.
  int64_t attempt = 1;  // That have failed, and this one.
};

struct OutboxRelayOptions {
  // Messages that are claimed at once.
  size_t batch = 100;
  // Keys that are sent at the same time; the function is called so often at once.
  size_t concurrency = 16;
  // For how long a batch is claimed. What is not begun in the first half of it is given back; so a
  // call of the function has almost half of it, and its waits then end with DEADLINE_EXCEEDED.
  absl::Duration lease = absl::Seconds(60);
  int64_t attempts_max = 20;
  Backoff backoff = {};
  // Which errors do not pass: a message that fails so is dead at once.
  StatusCodes permanent = {absl::StatusCode::kInvalidArgument};
  // How long messages stay in the table when they have been sent. Zero: they are taken out at once.
  absl::Duration keep_sent = absl::ZeroDuration();
  // Run looks so often for messages of which nobody has told it.
  absl::Duration poll = absl::Seconds(1);
  // How long one that is to stop tries to write down what was sent.
  std::chrono::nanoseconds settle_wait_max = std::chrono::seconds(5);
  // Where the numbers of OutboxRelayStatistics and OutboxCounts go: bobbin.outbox.sent and so on.
  // Must outlive the relay.
  Metrics* metrics = nullptr;
};

struct OutboxRelayStatistics {
  uint64_t claimed = 0;
  uint64_t sent = 0;        // The function has returned OK.
  uint64_t retried = 0;     // It has not, and there will be another attempt.
  uint64_t dead = 0;        // It has not, and there will be none.
  uint64_t given_back = 0;  // Claimed, but not begun in time, or cut short by a stop.
  uint64_t lost = 0;        // Sent, but that could not be written down: sent again.
};

class OutboxRelay {
 public:
  // Sends a message; OK means that the receiver has it for good. Called by several threads at once,
  // virtual ones; an exception counts as an error.
  using Send = absl::AnyInvocable<absl::Status(const OutboxMessage&) const>;

  OutboxRelay(const Outbox& outbox, OutboxRelayOptions options, Send send);
  OutboxRelay(const OutboxRelay&) = delete;
  OutboxRelay& operator=(const OutboxRelay&) = delete;
  ~OutboxRelay();

  // Sends what comes until Stop, or until the runtime stops (lifecycle.h), and then returns OK.
  absl::Status Run();
  // Sends until nothing is due. Returns how many were sent. For jobs.
  absl::StatusOr<int64_t> SendDue();

  // Has Run return when the messages that are being sent now have been; and all later calls at
  // once.
  void Stop();
  // Says that there may be something to send: what PgBell is for.
  void Ring();

  OutboxRelayStatistics Statistics() const;

 private:
  std::unique_ptr<internal::OutboxRelayCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_OUTBOX_RELAY_H_
