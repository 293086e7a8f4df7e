// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <exception>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/lease.h>
#include <bobbin/db/queue_runner.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>

#include "db/src/bell.h"
#include "db/src/durable_queue_core.h"
#include "db/src/limits.h"

namespace bobbin::db {

namespace internal {

using Claimed = DurableQueueCore::Claimed;
using QueueFailure = DurableQueueCore::Failure;
using QueueStep = DurableQueueCore::Step;
using RunKey = DurableQueueCore::RunKey;

// One run of a task, from its claim to its end.
class QueueRun {
 public:
  // What has become of a CompleteIn.
  enum class Completion : uint8_t { kNone, kOpen, kCommitted, kRolledBack };
  enum class Why : uint8_t { kGoesOn, kStopped, kLost };

  QueueRun(std::shared_ptr<DurableQueueCore> queue, Claimed claimed, absl::Duration keep_done,
           MonotonicTime lease_end)
      : queue_(std::move(queue)),
        claimed_(std::move(claimed)),
        keep_done_(keep_done),
        lease_end_(lease_end) {}
  QueueRun(const QueueRun&) = delete;
  QueueRun& operator=(const QueueRun&) = delete;

  const Claimed& claimed() const { return claimed_; }
  const RunKey& key() const { return claimed_.key; }
  Event& stop() { return stop_; }

  // The body begins, and ends, on the calling thread.
  void Enter() {
    if (CurrentRole() != Role::kVirtual) return;
    const MutexLock lock(mutex_);
    thread_ = &bobbin::internal::Current();
    if (why_ != Why::kGoesOn) thread_->Cancel();
  }
  void Leave() {
    const MutexLock lock(mutex_);
    thread_ = nullptr;
    is_over_ = true;
  }

  // Asks the body to stop; the first reason counts.
  void AskToStop(Why why) {
    const MutexLock lock(mutex_);
    if (why_ != Why::kGoesOn) return;
    why_ = why;
    stop_.Set();
    if (thread_ != nullptr) thread_->Cancel();
  }
  Why why() const {
    const MutexLock lock(mutex_);
    return why_;
  }

  absl::Status CompleteIn(const std::shared_ptr<QueueRun>& self, Transaction& transaction) {
    BOBBIN_ASSIGN_OR_RETURN(const QueueStep step, queue_->Complete(transaction, key(), keep_done_));
    if (step == QueueStep::kLost) {
      return MakeStatus(absl::StatusCode::kAborted,
                        fmt::format("complete task {}: its lease is lost", key().id));
    }
    SetCompletion(Completion::kOpen);
    transaction.AfterCommit([self] { self->SetCompletion(Completion::kCommitted); });
    transaction.AfterRollback([self] { self->SetCompletion(Completion::kRolledBack); });
    return absl::OkStatus();
  }
  Completion completion() const {
    const MutexLock lock(mutex_);
    return completion_;
  }

  // Whether the lease must still be looked after: not once the body is over, or has its end in a
  // transaction, which nobody can take from it.
  bool NeedsLease() const {
    const MutexLock lock(mutex_);
    return !is_over_ &&
           (completion_ == Completion::kNone || completion_ == Completion::kRolledBack);
  }
  void ExtendLease(MonotonicTime end) {
    const MutexLock lock(mutex_);
    lease_end_ = std::max(lease_end_, end);
  }
  MonotonicTime lease_end() const {
    const MutexLock lock(mutex_);
    return lease_end_;
  }

  // For the hooks of transactions.
  void set_self(const std::shared_ptr<QueueRun>& self) { self_ = self; }
  std::shared_ptr<QueueRun> self() const { return self_.lock(); }

 private:
  void SetCompletion(Completion completion) {
    const MutexLock lock(mutex_);
    completion_ = completion;
  }

  const std::shared_ptr<DurableQueueCore> queue_;
  const Claimed claimed_;
  const absl::Duration keep_done_;
  std::weak_ptr<QueueRun> self_;
  Event stop_;

  mutable Mutex mutex_;
  bobbin::internal::Thread* thread_ ABSL_GUARDED_BY(mutex_) = nullptr;  // While a body is on it.
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  Why why_ ABSL_GUARDED_BY(mutex_) = Why::kGoesOn;
  Completion completion_ ABSL_GUARDED_BY(mutex_) = Completion::kNone;
  // On this process's clock, reckoned from before the claim or extension was sent.
  MonotonicTime lease_end_ ABSL_GUARDED_BY(mutex_);
};

class QueueRunnerCore : public std::enable_shared_from_this<QueueRunnerCore> {
 public:
  QueueRunnerCore(std::shared_ptr<DurableQueueCore> queue, QueueRunnerOptions options,
                  QueueRunner::Body body)
      : queue_(std::move(queue)), options_(std::move(options)), body_(std::move(body)) {
    // Within what adds up without an overflow.
    options_.lease = std::clamp(options_.lease, absl::Milliseconds(3), kQueueTimeMax);
    options_.poll = std::clamp(options_.poll, absl::Milliseconds(1), kQueueTimeMax);
    options_.keep_done = std::min(options_.keep_done, kQueueTimeMax);
    options_.backoff.max = std::min(options_.backoff.max, kQueueTimeMax);
    options_.concurrency = std::max<size_t>(options_.concurrency, 1);
    queue_->bells().Add(bell_);
    if (options_.metrics != nullptr) {
      source_ =
          options_.metrics->AddSource([this](MetricsSnapshot& snapshot) { AddNumbers(snapshot); });
    }
  }
  QueueRunnerCore(const QueueRunnerCore&) = delete;
  QueueRunnerCore& operator=(const QueueRunnerCore&) = delete;
  ~QueueRunnerCore() { queue_->bells().Remove(bell_); }

  absl::Status Run();
  void Stop() {
    stop_.Set();
    bell_.Ring();
  }
  void Ring() { bell_.Ring(); }
  // Nobody reads its numbers any more.
  void Abandon() { source_ = MetricsSource(); }

  QueueRunnerStatistics Statistics() const {
    const MutexLock lock(mutex_);
    QueueRunnerStatistics statistics = statistics_;
    statistics.running = running_.size();
    return statistics;
  }

 private:
  using Runs = std::vector<std::shared_ptr<QueueRun>>;
  using Counter = uint64_t QueueRunnerStatistics::*;

  // What an executor is given: it runs the body, or is dropped.
  class Ride;

  // On the thread in Run.
  absl::Status ClaimAndStart(Executor& executor);
  absl::Status ReleaseStrays();
  void ReleaseDropped();
  void LookAfterLeases();
  void KeepHouse();
  absl::Status Drain(const absl::Status& why);
  absl::Status AwaitRing(MonotonicTime until);
  Runs Running() const {
    const MutexLock lock(mutex_);
    Runs runs;
    for (const auto& [key, run] : running_) runs.push_back(run);
    return runs;
  }

  // On the threads of the executor.
  void Execute(const std::shared_ptr<QueueRun>& run);
  void Settle(QueueRun& run, const absl::Status& status);
  absl::StatusOr<Counter> TrySettle(QueueRun& run, const absl::Status& status);
  void NoteDropped(const std::shared_ptr<QueueRun>& run);
  void End(const QueueRun& run, Counter counter);
  uint64_t NextRandom() {
    const MutexLock lock(mutex_);
    return random_();
  }

  void AddNumbers(MetricsSnapshot& snapshot) const;

  const std::shared_ptr<DurableQueueCore> queue_;
  QueueRunnerOptions options_;
  const QueueRunner::Body body_;
  const std::string owner_ = cron::NewLeaseOwner();
  Bell bell_;
  Event stop_;

  // Of the thread in Run.
  MonotonicTime next_promote_;
  MonotonicTime next_extend_ = MonotonicTime::max();
  MonotonicTime next_due_ = MonotonicTime::max();
  MonotonicTime next_drop_;
  MonotonicTime next_count_;
  bool has_strays_ = false;  // A claim may have been made whose answer was lost.

  mutable Mutex mutex_;
  // By task and token: a task whose lease was lost may be back before its last run has ended.
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<QueueRun>> running_ ABSL_GUARDED_BY(mutex_);
  Runs dropped_
      ABSL_GUARDED_BY(mutex_);  // By their executor, before they began. Still in running_.
  // Whether the end of a run is to be told, and not only that half of the places are free.
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_more_ ABSL_GUARDED_BY(mutex_) = false;  // The last claim got all that it wanted.
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_){std::random_device()()};
  QueueRunnerStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  QueueCounts counts_ ABSL_GUARDED_BY(mutex_);
  MetricsSource source_;  // The last: it is asked by others, and uses the rest.
};

class QueueRunnerCore::Ride {
 public:
  Ride(std::shared_ptr<QueueRunnerCore> core, std::shared_ptr<QueueRun> run)
      : core_(std::move(core)), run_(std::move(run)) {}
  Ride(Ride&& other) noexcept = default;
  Ride& operator=(Ride&&) = delete;
  ~Ride() {
    if (core_ != nullptr) core_->NoteDropped(run_);
  }
  void operator()() {
    const std::shared_ptr<QueueRunnerCore> core = std::move(core_);
    core->Execute(run_);
  }

 private:
  std::shared_ptr<QueueRunnerCore> core_;
  std::shared_ptr<QueueRun> run_;
};

// --- The thread in Run.

absl::Status QueueRunnerCore::Run() {
  if (stop_.IsSet()) return absl::OkStatus();
  BOBBIN_ASSIGN_OR_RETURN(Executor* const executor,
                          options_.thread
                              ? CurrentExecutors().Find(options_.executor, *options_.thread)
                              : CurrentExecutors().Find(options_.executor));
  {
    const MutexLock lock(mutex_);
    is_draining_ = false;
  }
  // A runtime that ends has its executors run what they have got, but nothing more.
  const StopHook stop_hook = CurrentLifecycle().OnStop(
      {.phase = StopPhase::kScheduler, .name = "queue"}, [core = shared_from_this()] {
        core->Stop();
        return absl::OkStatus();
      });
  auto pause = kQueuePauseMin;
  absl::Status why;
  while (!stop_.IsSet()) {
    why = CheckStop();
    if (!why.ok()) break;
    const absl::Status claimed = ClaimAndStart(*executor);
    MonotonicTime until = MonotonicNow() + absl::ToChronoNanoseconds(options_.poll);
    if (claimed.ok()) {
      pause = kQueuePauseMin;
    } else if (CheckStop().ok()) {
      Log(LogLevel::kWarning, "queue: no tasks can be run",
          {{"queue", queue_->options().name},
           {"error", claimed.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
      until = MonotonicNow() + pause;
      pause = std::min<std::chrono::milliseconds>(pause * 2, kQueuePauseMax);
    }
    LookAfterLeases();
    if (claimed.ok()) KeepHouse();
    why = AwaitRing(std::min(until, next_due_));
    if (!why.ok()) break;
  }
  return Drain(why);
}

absl::Status QueueRunnerCore::AwaitRing(MonotonicTime until) {
  const absl::Status rung = bell_.Await(Deadline::At(std::min(until, next_extend_)));
  return rung.ok() ? rung : CheckStop();
}

absl::Status QueueRunnerCore::ClaimAndStart(Executor& executor) {
  if (MonotonicNow() >= next_due_) next_due_ = MonotonicTime::max();
  // So that a database that does not answer leaves time for the leases.
  const DeadlineScope scope(absl::ToChronoNanoseconds(options_.lease / 4));
  ReleaseDropped();
  BOBBIN_RETURN_IF_ERROR(ReleaseStrays());
  size_t free = 0;
  bool has_more = false;
  {
    const MutexLock lock(mutex_);
    free = options_.concurrency - std::min(options_.concurrency, running_.size());
    has_more = has_more_;
  }
  if (free == 0) return absl::OkStatus();

  // While there is enough to do it is seldom looked for more.
  MonotonicTime now = MonotonicNow();
  if (!has_more || now >= next_promote_) {
    BOBBIN_ASSIGN_OR_RETURN(const int64_t dead, queue_->Promote());
    next_promote_ = now + kQueuePromoteEvery;
    const MutexLock lock(mutex_);
    statistics_.dead += static_cast<uint64_t>(dead);
  }
  const MonotonicTime before = MonotonicNow();
  absl::StatusOr<std::vector<Claimed>> claimed = queue_->Claim(owner_, free, options_.lease);
  if (!claimed.ok()) {
    has_strays_ = true;
    return std::move(claimed).status();
  }
  Runs runs;
  for (Claimed& each : *claimed) {
    runs.push_back(std::make_shared<QueueRun>(queue_, std::move(each), options_.keep_done,
                                              before + absl::ToChronoNanoseconds(options_.lease)));
    runs.back()->set_self(runs.back());
  }
  {
    const MutexLock lock(mutex_);
    has_more_ = runs.size() == free;
    statistics_.claimed += runs.size();
    for (const auto& run : runs) {
      const RunKey& key = run->key();
      // Of the same task, if there is one, are those that have lost it.
      for (auto i = running_.lower_bound({key.id, 0});
           i != running_.end() && i->first.first == key.id; ++i) {
        i->second->AskToStop(QueueRun::Why::kLost);
      }
      running_.emplace(std::pair(key.id, key.token), run);
    }
  }
  if (!runs.empty()) {
    next_extend_ = std::min(next_extend_, before + absl::ToChronoNanoseconds(options_.lease / 3));
  }
  absl::Status started;
  for (const auto& run : runs) {
    // One that is refused is dropped: NoteDropped.
    started.Update(
        executor.Submit({.name = queue_->options().name}, Ride(shared_from_this(), run)));
  }
  BOBBIN_RETURN_IF_ERROR(started);
  if (runs.size() == free) return absl::OkStatus();

  // A little later than it is due: the database's clock has whole milliseconds. What is due, and
  // yet nobody's, is locked.
  next_due_ = MonotonicTime::max();
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<absl::Duration> next, queue_->NextDue());
  if (next) {
    next_due_ =
        MonotonicNow() +
        std::max<std::chrono::nanoseconds>(
            absl::ToChronoNanoseconds(std::min(*next, kQueueTimeMax) + absl::Milliseconds(2)),
            *next > absl::ZeroDuration() ? std::chrono::nanoseconds(0) : kQueuePromoteEvery);
  }
  return absl::OkStatus();
}

absl::Status QueueRunnerCore::ReleaseStrays() {
  if (!has_strays_) return absl::OkStatus();
  std::vector<int64_t> ids;
  for (const auto& run : Running()) ids.push_back(run->key().id);
  BOBBIN_RETURN_IF_ERROR(queue_->ReleaseOthers(owner_, ids));
  has_strays_ = false;
  return absl::OkStatus();
}

// What fails here has its lease run out.
void QueueRunnerCore::ReleaseDropped() {
  Runs dropped;
  {
    const MutexLock lock(mutex_);
    dropped.swap(dropped_);
  }
  const DeadlineScope scope(kQueueSettleMax);
  for (const auto& run : dropped) {
    queue_->Release(run->key()).IgnoreError();
    End(*run, &QueueRunnerStatistics::given_back);
  }
}

// Extends all leases at once, when the first third of the oldest is over; after a failure again,
// oftener towards its end. Those that are lost have their bodies stopped.
void QueueRunnerCore::LookAfterLeases() {
  const MonotonicTime now = MonotonicNow();
  if (now < next_extend_) return;
  next_extend_ = MonotonicTime::max();
  Runs runs;
  std::vector<int64_t> ids;
  for (const auto& run : Running()) {
    if (!run->NeedsLease()) continue;
    runs.push_back(run);
    ids.push_back(run->key().id);
  }
  if (runs.empty()) {
    // Those in a transaction may be rolled back, and then need it again.
    if (!Running().empty()) next_extend_ = now + absl::ToChronoNanoseconds(options_.lease / 12);
    return;
  }

  absl::StatusOr<std::vector<RunKey>> held = absl::UnknownError("");
  {
    const DeadlineScope scope(absl::ToChronoNanoseconds(options_.lease / 4));
    held = queue_->Extend(owner_, ids, options_.lease);
  }
  if (held.ok()) {
    std::map<int64_t, int64_t> tokens;
    for (const RunKey& key : *held) tokens.emplace(key.id, key.token);
    for (const auto& run : runs) {
      const auto token = tokens.find(run->key().id);
      if (token != tokens.end() && token->second == run->key().token) {
        run->ExtendLease(now + absl::ToChronoNanoseconds(options_.lease));
      } else if (run->NeedsLease()) {
        run->AskToStop(QueueRun::Why::kLost);
      }
    }
    next_extend_ = now + absl::ToChronoNanoseconds(options_.lease / 3);
    return;
  }
  const MonotonicTime later = MonotonicNow();
  next_extend_ = later + absl::ToChronoNanoseconds(options_.lease / 3);
  for (const auto& run : runs) {
    if (!run->NeedsLease()) continue;
    const auto left = run->lease_end() - later;
    if (left.count() <= 0) {
      run->AskToStop(QueueRun::Why::kLost);
    } else {
      next_extend_ = std::min(
          next_extend_, later + std::max<std::chrono::nanoseconds>(left / 4, kQueuePauseMin / 10));
    }
  }
}

// What fails here is done next time.
void QueueRunnerCore::KeepHouse() {
  const DeadlineScope scope(absl::ToChronoNanoseconds(options_.lease / 4));
  const MonotonicTime now = MonotonicNow();
  if (options_.keep_done > absl::ZeroDuration() && now >= next_drop_) {
    queue_->DropDone(options_.keep_done).IgnoreError();
    next_drop_ = now + std::min<std::chrono::nanoseconds>(
                           absl::ToChronoNanoseconds(options_.keep_done), kQueueCountEvery);
  }
  if (options_.metrics != nullptr && now >= next_count_) {
    if (const absl::StatusOr<QueueCounts> counts = queue_->Count(); counts.ok()) {
      const MutexLock lock(mutex_);
      counts_ = *counts;
    }
    next_count_ = now + kQueueCountEvery;
  }
}

absl::Status QueueRunnerCore::Drain(const absl::Status& why) {
  const CancelShield shield;
  {
    const MutexLock lock(mutex_);
    is_draining_ = true;
  }
  const MonotonicTime begun = MonotonicNow();
  const MonotonicTime soft = why.ok() ? begun + options_.stop_budget / 5 * 4 : begun;
  const MonotonicTime hard = begun + options_.stop_budget;
  while (true) {
    ReleaseDropped();
    const Runs runs = Running();
    if (runs.empty()) return why;
    const MonotonicTime now = MonotonicNow();
    if (now >= hard) {
      std::vector<int64_t> ids;
      for (const auto& run : runs) ids.push_back(run->key().id);
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        fmt::format("stop queue {}: still running: {}", queue_->options().name,
                                    fmt::join(ids, ", ")));
    }
    if (now >= soft) {
      for (const auto& run : runs) run->AskToStop(QueueRun::Why::kStopped);
    }
    LookAfterLeases();
    // Not OK: the time has come for the next look.
    AwaitRing(now < soft ? soft : hard).IgnoreError();
  }
}

// --- The threads of the executor.

void QueueRunnerCore::Execute(const std::shared_ptr<QueueRun>& run) {
  absl::Status status;
  run->Enter();
  {
    const DeadlineScope scope(options_.run_max >= kQueueTimeMax
                                  ? Deadline::Never()
                                  : Deadline::After(absl::ToChronoNanoseconds(options_.run_max)));
    const std::exception_ptr exception =
        bobbin::internal::CaptureException([&] { status = body_(QueueTask(*run)); });
    if (exception != nullptr) {
      status = MakeStatus(absl::StatusCode::kUnknown, "its body ended with an exception");
    }
  }
  // Also by the end of its executor, which is not its own fault either.
  if (!status.ok() && !CheckStop().ok()) run->AskToStop(QueueRun::Why::kStopped);
  run->Leave();
  Settle(*run, status);
}

// As long as the lease lasts; one whose runner is to stop tries once more.
void QueueRunnerCore::Settle(QueueRun& run, const absl::Status& status) {
  bool is_last = stop_.IsSet() || !CheckStop().ok();
  auto pause = kQueuePauseMin;
  while (true) {
    absl::StatusOr<Counter> counter = absl::UnknownError("");
    {
      const CancelShield shield;
      const DeadlineScope scope(kQueueSettleMax);
      counter = TrySettle(run, status);
    }
    if (counter.ok()) return End(run, *counter);
    Log(LogLevel::kWarning, "queue: the end of a task is not written down",
        {{"queue", queue_->options().name},
         {"id", run.key().id},
         {"error", counter.status().ToString(absl::StatusToStringMode::kWithNoExtraData)}});
    if (is_last || MonotonicNow() >= run.lease_end()) break;
    // OK: it is to stop.
    is_last = stop_.WaitUntil(Deadline::After(pause)).ok() || !CheckStop().ok();
    pause = std::min<std::chrono::milliseconds>(pause * 2, kQueuePauseMax);
  }
  End(run, &QueueRunnerStatistics::lost);
}

// Returns as what it counts.
absl::StatusOr<QueueRunnerCore::Counter> QueueRunnerCore::TrySettle(QueueRun& run,
                                                                    const absl::Status& status) {
  const QueueRun::Completion completion = run.completion();
  if (completion == QueueRun::Completion::kCommitted) return &QueueRunnerStatistics::completed;
  // Whoever has been lost finds that his row is not his any more.
  const auto counted = [&](QueueStep step, Counter counter) {
    if (step == QueueStep::kMade) return counter;
    // The answer to its commit was lost; here it is.
    return completion == QueueRun::Completion::kOpen ? &QueueRunnerStatistics::completed
                                                     : &QueueRunnerStatistics::lost;
  };
  std::string error = status.ToString(absl::StatusToStringMode::kWithNoExtraData);
  if (status.ok() && completion == QueueRun::Completion::kRolledBack) {
    error = "its transaction was rolled back";
  } else if (status.ok()) {
    BOBBIN_ASSIGN_OR_RETURN(const QueueStep step,
                            queue_->Complete(queue_->database(), run.key(), options_.keep_done));
    return counted(step, &QueueRunnerStatistics::completed);
  } else if (run.why() == QueueRun::Why::kStopped) {
    BOBBIN_ASSIGN_OR_RETURN(const QueueStep step, queue_->Release(run.key()));
    return counted(step, &QueueRunnerStatistics::given_back);
  }

  const Claimed& claimed = run.claimed();
  QueueFailure failure = {.error = std::move(error)};
  if (claimed.attempt >= claimed.attempts_max || options_.permanent.Contains(status.code())) {
    failure.then = QueueFailure::Then::kDead;
    BOBBIN_ASSIGN_OR_RETURN(const QueueStep step, queue_->Fail(run.key(), failure));
    Log(LogLevel::kError, "queue: a dead letter",
        {{"queue", queue_->options().name}, {"id", claimed.key.id}, {"error", failure.error}});
    return counted(step, &QueueRunnerStatistics::dead);
  }
  failure.pause = options_.backoff.After(claimed.attempt, NextRandom());
  BOBBIN_ASSIGN_OR_RETURN(const QueueStep step, queue_->Fail(run.key(), failure));
  // So that the runners know when it is due.
  queue_->bells().RingAll();
  return counted(step, &QueueRunnerStatistics::retried);
}

void QueueRunnerCore::End(const QueueRun& run, Counter counter) {
  const MutexLock lock(mutex_);
  ++(statistics_.*counter);
  running_.erase({run.key().id, run.key().token});
  // While more than half are taken a claim would be one for each end. Nothing else rings for those
  // that are in the table by now: so all that end below that do.
  if (is_draining_ || (has_more_ && running_.size() <= options_.concurrency / 2)) bell_.Ring();
}

void QueueRunnerCore::NoteDropped(const std::shared_ptr<QueueRun>& run) {
  // Its executor would refuse the next one, too: that is tried again after a while.
  const MutexLock lock(mutex_);
  dropped_.push_back(run);
  if (is_draining_) bell_.Ring();
}

void QueueRunnerCore::AddNumbers(MetricsSnapshot& snapshot) const {
  const QueueRunnerStatistics statistics = Statistics();
  QueueCounts counts;
  {
    const MutexLock lock(mutex_);
    counts = counts_;
  }
  const std::vector<Attribute> which = {{"queue", queue_->options().name}};
  const auto count = [&](const char* name, uint64_t value) {
    snapshot.AddCounter({.name = name}, static_cast<double>(value), which);
  };
  count("bobbin.queue.completed", statistics.completed);
  count("bobbin.queue.retried", statistics.retried);
  count("bobbin.queue.dead", statistics.dead);
  count("bobbin.queue.given_back", statistics.given_back);
  count("bobbin.queue.lost", statistics.lost);
  const auto gauge = [&](const MetricOptions& metric, double value) {
    snapshot.AddGauge(metric, value, which);
  };
  gauge({.name = "bobbin.queue.ready"}, static_cast<double>(counts.ready));
  gauge({.name = "bobbin.queue.waiting"}, static_cast<double>(counts.waiting));
  gauge({.name = "bobbin.queue.running"}, static_cast<double>(counts.running));
  gauge({.name = "bobbin.queue.dead_letters"}, static_cast<double>(counts.dead));
  gauge({.name = "bobbin.queue.lag", .unit = "s"}, absl::ToDoubleSeconds(counts.lag));
}

}  // namespace internal

// --- QueueTask.

int64_t QueueTask::id() const { return run_.key().id; }
std::string_view QueueTask::payload() const { return run_.claimed().payload; }
int QueueTask::priority() const { return run_.claimed().priority; }
int QueueTask::attempt() const { return run_.claimed().attempt; }
int64_t QueueTask::token() const { return run_.key().token; }
absl::Time QueueTask::created() const { return run_.claimed().created; }
Event& QueueTask::stop() const { return run_.stop(); }
absl::Status QueueTask::CompleteIn(Transaction& transaction) const {
  return run_.CompleteIn(run_.self(), transaction);
}

// --- QueueRunner.

QueueRunner::QueueRunner(const DurableQueue& queue, QueueRunnerOptions options, Body body)
    : core_(std::make_shared<internal::QueueRunnerCore>(queue.core_, std::move(options),
                                                        std::move(body))) {}
QueueRunner::~QueueRunner() { core_->Abandon(); }

absl::Status QueueRunner::Run() { return core_->Run(); }
void QueueRunner::Stop() { core_->Stop(); }
void QueueRunner::Ring() { core_->Ring(); }
QueueRunnerStatistics QueueRunner::Statistics() const { return core_->Statistics(); }

}  // namespace bobbin::db
