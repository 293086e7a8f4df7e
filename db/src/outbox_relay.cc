// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/lease.h>
#include <bobbin/db/outbox_relay.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/task_group.h>

#include "db/src/bell.h"
#include "db/src/limits.h"
#include "db/src/outbox_core.h"

namespace bobbin::db {

namespace internal {

class OutboxRelayCore {
 public:
  OutboxRelayCore(std::shared_ptr<OutboxCore> outbox, OutboxRelayOptions options,
                  OutboxRelay::Send send)
      : outbox_(std::move(outbox)), options_(std::move(options)), send_(std::move(send)) {
    // Within what adds up without an overflow.
    options_.lease = std::clamp(options_.lease, absl::Milliseconds(1), kQueueTimeMax);
    options_.poll = std::clamp(options_.poll, absl::Milliseconds(1), kQueueTimeMax);
    options_.keep_sent = std::min(options_.keep_sent, kQueueTimeMax);
    options_.backoff.max = std::min(options_.backoff.max, kQueueTimeMax);
    options_.batch = std::max<size_t>(options_.batch, 1);
    options_.concurrency = std::max<size_t>(options_.concurrency, 1);
    outbox_->bells().Add(bell_);
    if (options_.metrics != nullptr) {
      source_ =
          options_.metrics->AddSource([this](MetricsSnapshot& snapshot) { AddNumbers(snapshot); });
    }
  }
  OutboxRelayCore(const OutboxRelayCore&) = delete;
  OutboxRelayCore& operator=(const OutboxRelayCore&) = delete;
  ~OutboxRelayCore() { outbox_->bells().Remove(bell_); }

  absl::Status Run();
  absl::StatusOr<int64_t> SendDue();

  void Stop() {
    stop_.Set();
    bell_.Ring();
  }
  void Ring() { bell_.Ring(); }

  OutboxRelayStatistics Statistics() const {
    const MutexLock lock(mutex_);
    return statistics_;
  }

 private:
  enum class Fate : uint8_t { kNotBegun, kSent, kFailed };
  struct Sending {
    OutboxMessage message;
    Fate fate = Fate::kNotBegun;
    absl::Status error = {};  // Of kFailed.
  };
  struct Batch {
    std::string claim;
    // Reckoned from before the claim was sent: by the database's clock it lasts longer.
    MonotonicTime begun;
    std::vector<Sending> sendings = {};

    // What is left to be written down.
    std::vector<int64_t> sent = {};
    std::vector<OutboxCore::Failure> failed = {};
    std::vector<int64_t> unsent = {};
  };
  // What a batch has come to.
  struct Tally {
    size_t claimed = 0;
    int64_t sent = 0;
  };

  MonotonicTime PartOfLease(const Batch& batch, double part) const {
    return batch.begun + absl::ToChronoNanoseconds(options_.lease * part);
  }

  absl::StatusOr<Tally> SendBatch();
  absl::Status SendAll(Batch& batch);
  void SendChain(const Batch& batch, const std::vector<Sending*>& chain);
  void Judge(Batch& batch);
  void Settle(Batch& batch);
  absl::Status TrySettle(Batch& batch);
  // A message that has just failed is due again after `pause`.
  void NoteRetry(absl::Duration pause);
  absl::Status GiveBackDoubtful();
  void KeepHouse();
  absl::Status AwaitRing(Deadline deadline);
  void AddNumbers(MetricsSnapshot& snapshot) const;

  const std::shared_ptr<OutboxCore> outbox_;
  OutboxRelayOptions options_;
  const OutboxRelay::Send send_;
  Bell bell_;
  Event stop_;

  // Of the thread in Run or SendDue.
  std::mt19937_64 random_{std::random_device()()};
  // Claims of which nobody knows whether the database has made them.
  std::vector<std::string> doubtful_;
  // When what has failed here is due again.
  std::priority_queue<MonotonicTime, std::vector<MonotonicTime>, std::greater<>> retries_;
  MonotonicTime next_drop_;
  MonotonicTime next_count_;

  mutable Mutex mutex_;
  OutboxRelayStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  OutboxCounts counts_ ABSL_GUARDED_BY(mutex_);
  MetricsSource source_;  // The last: it is asked by others, and uses the rest.
};

absl::Status OutboxRelayCore::Run() {
  // A runtime that ends has the messages sent that are on their way.
  const StopHook stop_hook =
      CurrentLifecycle().OnStop({.phase = StopPhase::kScheduler, .name = "outbox"}, [this] {
        Stop();
        return absl::OkStatus();
      });
  auto pause = kQueuePauseMin;
  while (!stop_.IsSet()) {
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    const absl::StatusOr<Tally> tally = SendBatch();
    if (!tally.ok()) {
      BOBBIN_RETURN_IF_ERROR(CheckStop());
      Log(LogLevel::kWarning, "outbox: the database has failed",
          {{"outbox", outbox_->options().table},
           {"error", tally.status().ToString(absl::StatusToStringMode::kWithNoExtraData)}});
      const absl::Status stopped = stop_.WaitUntil(Deadline::After(pause));
      if (!stopped.ok()) BOBBIN_RETURN_IF_ERROR(CheckStop());
      pause = std::min<std::chrono::milliseconds>(pause * 2, kQueuePauseMax);
      continue;
    }
    pause = kQueuePauseMin;
    KeepHouse();
    if (tally->claimed != 0) continue;
    MonotonicTime next = MonotonicNow() + absl::ToChronoNanoseconds(options_.poll);
    if (!retries_.empty()) next = std::min(next, retries_.top());
    BOBBIN_RETURN_IF_ERROR(AwaitRing(Deadline::At(next)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> OutboxRelayCore::SendDue() {
  int64_t sent = 0;
  while (!stop_.IsSet()) {
    BOBBIN_ASSIGN_OR_RETURN(const Tally tally, SendBatch());
    sent += tally.sent;
    if (tally.claimed == 0) break;
  }
  KeepHouse();
  return sent;
}

absl::Status OutboxRelayCore::AwaitRing(Deadline deadline) {
  const absl::Status rung = bell_.Await(deadline);
  return rung.ok() ? rung : CheckStop();
}

absl::StatusOr<OutboxRelayCore::Tally> OutboxRelayCore::SendBatch() {
  BOBBIN_RETURN_IF_ERROR(GiveBackDoubtful());
  while (!retries_.empty() && retries_.top() <= MonotonicNow()) retries_.pop();
  Batch batch = {.claim = cron::NewLeaseOwner(), .begun = MonotonicNow()};
  absl::StatusOr<std::vector<OutboxMessage>> messages =
      outbox_->Claim(batch.claim, options_.batch, options_.lease);
  if (!messages.ok()) {
    doubtful_.push_back(std::move(batch.claim));
    return std::move(messages).status();
  }
  if (messages->empty()) return Tally{};
  for (OutboxMessage& message : *messages) {
    batch.sendings.push_back({.message = std::move(message)});
  }

  const absl::Status sent = SendAll(batch);
  Judge(batch);
  const Tally tally = {.claimed = batch.sendings.size(),
                       .sent = static_cast<int64_t>(batch.sent.size())};
  Settle(batch);
  BOBBIN_RETURN_IF_ERROR(sent);
  return tally;
}

absl::Status OutboxRelayCore::SendAll(Batch& batch) {
  // What has no key has no order either: each is a chain of its own.
  std::vector<std::vector<Sending*>> chains;
  std::map<std::pair<std::string_view, std::string_view>, size_t> by_key;
  for (Sending& sending : batch.sendings) {
    const OutboxMessage& message = sending.message;
    size_t index = chains.size();
    if (!message.key.empty()) {
      index = by_key.try_emplace({message.topic, message.key}, index).first->second;
    }
    if (index == chains.size()) chains.emplace_back();
    chains[index].push_back(&sending);
  }

  TaskGroup group({.live_max = options_.concurrency});
  for (const std::vector<Sending*>& chain : chains) {
    group.Spawn({.name = "outbox"}, [this, &batch, &chain] { SendChain(batch, chain); });
  }
  return group.Wait();
}

void OutboxRelayCore::SendChain(const Batch& batch, const std::vector<Sending*>& chain) {
  for (Sending* const sending : chain) {
    if (stop_.IsSet() || !CheckStop().ok()) return;
    if (MonotonicNow() >= PartOfLease(batch, 0.5)) return;
    absl::Status status;
    {
      const DeadlineScope scope(Deadline::At(PartOfLease(batch, 0.95)));
      const std::exception_ptr exception =
          bobbin::internal::CaptureException([&] { status = send_(sending->message); });
      if (exception != nullptr) {
        status = MakeStatus(absl::StatusCode::kUnknown, "it ended with an exception");
      }
    }
    if (status.ok()) {
      sending->fate = Fate::kSent;
      continue;
    }
    // Not its own fault, if it was asked to stop.
    if (!CheckStop().ok()) return;
    sending->fate = Fate::kFailed;
    sending->error = std::move(status);
    return;
  }
}

void OutboxRelayCore::Judge(Batch& batch) {
  OutboxRelayStatistics more = {.claimed = batch.sendings.size()};
  for (const Sending& sending : batch.sendings) {
    const OutboxMessage& message = sending.message;
    switch (sending.fate) {
      case Fate::kSent:
        batch.sent.push_back(message.id);
        ++more.sent;
        break;
      case Fate::kNotBegun:
        batch.unsent.push_back(message.id);
        ++more.given_back;
        break;
      case Fate::kFailed: {
        const bool is_dead = message.attempt >= options_.attempts_max ||
                             options_.permanent.Contains(sending.error.code());
        OutboxCore::Failure failure = {
            .id = message.id,
            .error = sending.error.ToString(absl::StatusToStringMode::kWithNoExtraData)};
        if (is_dead) {
          failure.then = OutboxCore::Failure::Then::kDead;
          ++more.dead;
          Log(LogLevel::kError, "outbox: a dead letter",
              {{"outbox", outbox_->options().table},
               {"topic", message.topic},
               {"key", message.key},
               {"id", message.id},
               {"error", failure.error}});
        } else {
          failure.pause = options_.backoff.After(message.attempt, random_());
          ++more.retried;
        }
        batch.failed.push_back(std::move(failure));
        break;
      }
    }
  }
  const MutexLock lock(mutex_);
  statistics_.claimed += more.claimed;
  statistics_.sent += more.sent;
  statistics_.retried += more.retried;
  statistics_.dead += more.dead;
  statistics_.given_back += more.given_back;
}

// What was sent is sent again if this fails: so it is tried for as long as the lease lasts. One
// that is to stop tries once more.
void OutboxRelayCore::Settle(Batch& batch) {
  bool is_last = stop_.IsSet() || !CheckStop().ok();
  auto pause = kQueuePauseMin;
  while (true) {
    absl::Status status;
    {
      const CancelShield shield;
      const DeadlineScope scope(options_.settle_wait_max);
      status = TrySettle(batch);
    }
    if (status.ok()) return;
    Log(LogLevel::kWarning, "outbox: what was sent is not written down",
        {{"outbox", outbox_->options().table},
         {"error", status.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
    if (is_last || MonotonicNow() >= PartOfLease(batch, 1.0)) break;
    // OK: it is to stop.
    is_last = stop_.WaitUntil(Deadline::After(pause)).ok() || !CheckStop().ok();
    pause = std::min<std::chrono::milliseconds>(pause * 2, kQueuePauseMax);
  }
  const MutexLock lock(mutex_);
  statistics_.lost += batch.sent.size();
}

// Drops what is done from the lists.
absl::Status OutboxRelayCore::TrySettle(Batch& batch) {
  if (!batch.sent.empty()) {
    const absl::Status settled = outbox_->SettleSent(batch.claim, batch.sent, options_.keep_sent);
    // ABORTED: an attempt whose answer was lost, or another relay has them by now.
    if (!settled.ok() && settled.code() != absl::StatusCode::kAborted) return settled;
    batch.sent.clear();
  }
  while (!batch.failed.empty()) {
    const OutboxCore::Failure& failure = batch.failed.back();
    BOBBIN_RETURN_IF_ERROR(outbox_->SettleFailed(batch.claim, failure));
    if (failure.then == OutboxCore::Failure::Then::kAgain) NoteRetry(failure.pause);
    batch.failed.pop_back();
  }
  if (!batch.unsent.empty()) {
    BOBBIN_RETURN_IF_ERROR(outbox_->GiveBack(batch.claim, batch.unsent));
    batch.unsent.clear();
  }
  return absl::OkStatus();
}

// A little later: the database's clock has whole milliseconds.
void OutboxRelayCore::NoteRetry(absl::Duration pause) {
  retries_.push(MonotonicNow() + absl::ToChronoNanoseconds(pause + absl::Milliseconds(2)));
}

// So that they need not wait for their leases' end.
absl::Status OutboxRelayCore::GiveBackDoubtful() {
  while (!doubtful_.empty()) {
    BOBBIN_RETURN_IF_ERROR(outbox_->GiveBackAll(doubtful_.back()));
    doubtful_.pop_back();
  }
  return absl::OkStatus();
}

// What fails here is done next time.
void OutboxRelayCore::KeepHouse() {
  const MonotonicTime now = MonotonicNow();
  if (options_.keep_sent > absl::ZeroDuration() && now >= next_drop_) {
    outbox_->DropSent(options_.keep_sent).IgnoreError();
    next_drop_ = now + std::min<std::chrono::nanoseconds>(
                           absl::ToChronoNanoseconds(options_.keep_sent), kQueueCountEvery);
  }
  if (options_.metrics != nullptr && now >= next_count_) {
    if (const absl::StatusOr<OutboxCounts> counts = outbox_->Count(); counts.ok()) {
      const MutexLock lock(mutex_);
      counts_ = *counts;
    }
    next_count_ = now + kQueueCountEvery;
  }
}

void OutboxRelayCore::AddNumbers(MetricsSnapshot& snapshot) const {
  OutboxRelayStatistics statistics;
  OutboxCounts counts;
  {
    const MutexLock lock(mutex_);
    statistics = statistics_;
    counts = counts_;
  }
  const std::vector<Attribute> which = {{"outbox", outbox_->options().table}};
  const auto count = [&](const char* name, uint64_t value) {
    snapshot.AddCounter({.name = name}, static_cast<double>(value), which);
  };
  count("bobbin.outbox.sent", statistics.sent);
  count("bobbin.outbox.retried", statistics.retried);
  count("bobbin.outbox.dead", statistics.dead);
  count("bobbin.outbox.lost", statistics.lost);
  const auto gauge = [&](const MetricOptions& metric, double value) {
    snapshot.AddGauge(metric, value, which);
  };
  gauge({.name = "bobbin.outbox.pending"}, static_cast<double>(counts.pending));
  gauge({.name = "bobbin.outbox.dead_letters"}, static_cast<double>(counts.dead));
  gauge({.name = "bobbin.outbox.lag", .unit = "s"}, absl::ToDoubleSeconds(counts.lag));
}

}  // namespace internal

OutboxRelay::OutboxRelay(const Outbox& outbox, OutboxRelayOptions options, Send send)
    : core_(std::make_unique<internal::OutboxRelayCore>(outbox.core_, std::move(options),
                                                        std::move(send))) {}
OutboxRelay::~OutboxRelay() = default;

absl::Status OutboxRelay::Run() { return core_->Run(); }
absl::StatusOr<int64_t> OutboxRelay::SendDue() { return core_->SendDue(); }
void OutboxRelay::Stop() { core_->Stop(); }
void OutboxRelay::Ring() { core_->Ring(); }
OutboxRelayStatistics OutboxRelay::Statistics() const { return core_->Statistics(); }

}  // namespace bobbin::db
