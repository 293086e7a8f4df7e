// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/sched/executors.h>
#include <bobbin/sched/runtime_metrics.h>

namespace bobbin {

namespace {

double InMilliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Adds what one thing counts, all with the same attributes.
class MetricsWriter {
 public:
  MetricsWriter(MetricsSnapshot& snapshot, std::vector<Attribute> attributes)
      : snapshot_(snapshot), attributes_(std::move(attributes)) {}

  template <typename Number>
  void Counter(const MetricOptions& metric, Number value) {
    snapshot_.AddCounter(metric, static_cast<double>(value), attributes_);
  }
  template <typename Number>
  void Gauge(const MetricOptions& metric, Number value) {
    snapshot_.AddGauge(metric, static_cast<double>(value), attributes_);
  }
  MetricsWriter With(Attribute attribute) const {
    std::vector<Attribute> attributes = attributes_;
    attributes.push_back(std::move(attribute));
    return {snapshot_, std::move(attributes)};
  }

 private:
  MetricsSnapshot& snapshot_;
  const std::vector<Attribute> attributes_;
};

void AddThreads(MetricsWriter all, const RuntimeStatistics& now) {
  const MetricOptions count = {.name = "bobbin.vthread.count",
                               .help = "Virtual threads that live now, by what they do.",
                               .unit = "{thread}"};
  for (const auto& [state, number] :
       {std::pair("fresh", now.fresh), std::pair("ready", now.ready),
        std::pair("running", now.running), std::pair("parked", now.parked)}) {
    all.With({"bobbin.vthread.state", state}).Gauge(count, number);
  }
  all.Counter({.name = "bobbin.vthread.spawned", .help = "Virtual threads launched."}, now.spawned);
  all.Counter({.name = "bobbin.vthread.started", .help = "Virtual threads that began to run."},
              now.started);
  all.Counter({.name = "bobbin.vthread.ended", .help = "Virtual threads that returned."},
              now.ended);
  all.Counter({.name = "bobbin.vthread.switches", .help = "Times one began or went on."},
              now.switches);
  all.Counter({.name = "bobbin.vthread.parks", .help = "Waits that left the carrier to others."},
              now.parks);
  all.Counter({.name = "bobbin.vthread.wakes", .help = "Such waits that were ended."}, now.wakes);
  all.Counter({.name = "bobbin.vthread.remote_wakes", .help = "Those ended by another OS thread."},
              now.remote_wakes);
  all.Counter({.name = "bobbin.vthread.yields", .help = "Yields."}, now.yields);
  all.Counter({.name = "bobbin.vthread.stolen",
               .help = "Fresh threads taken by another carrier than that of their spawn."},
              now.stolen);
  all.Counter({.name = "bobbin.vthread.migrated",
               .help = "Ready threads taken by another carrier than their last one."},
              now.migrated);
  all.Counter({.name = "bobbin.vthread.limited",
               .help = "Spawns that had to wait, or were refused, at the limit."},
              now.limited);
  all.Gauge({.name = "bobbin.vthread.waiting_for_limit",
             .help = "Spawners that wait for the limit on live threads now."},
            now.waiting_for_limit);
  all.Counter({.name = "bobbin.deadlocks", .help = "Times when nobody was left to wake any."},
              now.deadlocks);
  const MetricOptions holds = {.name = "bobbin.carrier.holds",
                               .help = "Virtual threads that kept a carrier for too long."};
  all.With({"bobbin.hold.kind", "computing"}).Counter(holds, now.computing_holds);
  all.With({"bobbin.hold.kind", "blocking"}).Counter(holds, now.blocking_holds);
  all.Gauge({.name = "bobbin.carrier.held",
             .help = "Carriers that a virtual thread has kept for too long now."},
            now.held_carriers);
}

void AddCarriers(MetricsWriter all, const RuntimeStatistics& now) {
  all.Counter({.name = "bobbin.carrier.turns", .help = "Rounds of the carriers' loops."},
              now.turns);
  all.Counter({.name = "bobbin.carrier.sleeps", .help = "Times one had nothing to do."},
              now.sleeps);
  all.Counter({.name = "bobbin.carrier.wakes", .help = "Times another thread ended that."},
              now.carrier_wakes);
  all.Gauge({.name = "bobbin.timer.count", .help = "Timers armed now."}, now.timers);

  const MetricOptions in_flight = {.name = "bobbin.io.in_flight",
                                   .help = "Operations in the kernel's hands now."};
  all.Gauge(in_flight, now.in_flight);
  const PollerStatistics& poller = now.poller;
  all.Counter({.name = "bobbin.io.early_submits", .help = "Submits because a queue was full."},
              poller.early_submits);
  all.Counter({.name = "bobbin.io.deferred", .help = "Operations for which there was no room."},
              poller.deferred);
  all.Counter({.name = "bobbin.io.overflows", .help = "Completions for which there was no room."},
              poller.overflows);
  all.Counter({.name = "bobbin.io.memory_pauses", .help = "Pauses because of no memory."},
              poller.memory_pauses);
  all.Counter({.name = "bobbin.io.accept_pauses",
               .help = "Accepts that stood still for want of descriptors or memory."},
              poller.accept_pauses);
  all.Gauge({.name = "bobbin.io.small_queues",
             .help = "Carriers whose queues are smaller than asked for."},
            poller.small_queues);
  all.Counter({.name = "bobbin.io.copied_sends", .help = "Zero-copy sends that were copied."},
              poller.copied_sends);

  const MetricOptions stacks = {.name = "bobbin.stack.count",
                                .help = "Stacks that were ever in use at once."};
  all.With({"bobbin.stack.size", "default"}).Gauge(stacks, now.stacks - now.sized_stacks);
  all.With({"bobbin.stack.size", "other"}).Gauge(stacks, now.sized_stacks);
  all.Gauge({.name = "bobbin.stack.size", .help = "Address space of one stack.", .unit = "By"},
            now.stack_bytes);
  all.Gauge({.name = "bobbin.stack.awaited", .help = "Fresh threads that wait for one now."},
            now.without_stack);
}

// What every executor counts.
template <typename Statistics>
void AddTasks(MetricsWriter all, const Statistics& now) {
  all.Gauge({.name = "bobbin.task.queue_depth",
             .help = "Tasks that wait for a thread now.",
             .unit = "{task}"},
            now.queued);
  all.Gauge({.name = "bobbin.task.active", .help = "Tasks that run now.", .unit = "{task}"},
            now.active);
  all.Counter({.name = "bobbin.task.completed", .help = "Tasks that have run."}, now.completed);
  all.Counter({.name = "bobbin.task.rejected", .help = "Tasks refused for want of room."},
              now.rejected);
  all.Counter({.name = "bobbin.task.queue_wait",
               .help = "How long tasks were queued, added up.",
               .unit = "ms"},
              InMilliseconds(now.wait_total));
  all.Gauge({.name = "bobbin.task.queue_wait_max",
             .help = "How long a task was queued at most.",
             .unit = "ms"},
            InMilliseconds(now.wait_max));
  all.Counter(
      {.name = "bobbin.task.run_time", .help = "How long tasks ran, added up.", .unit = "ms"},
      InMilliseconds(now.run_total));
  all.Gauge(
      {.name = "bobbin.task.run_time_max", .help = "How long a task ran at most.", .unit = "ms"},
      InMilliseconds(now.run_max));
}

const MetricOptions kDropped = {.name = "bobbin.task.dropped",
                                .help = "Tasks that were queued and never run."};

}  // namespace

void AddStatistics(MetricsSnapshot& snapshot, const RuntimeStatistics& statistics) {
  AddThreads(MetricsWriter(snapshot, {}), statistics);
  AddCarriers(MetricsWriter(snapshot, {}), statistics);
  AddStatistics(snapshot, "blocking", statistics.blocking);
  AddStatistics(snapshot, "sync", statistics.syncing);
}

void AddStatistics(MetricsSnapshot& snapshot, std::string_view executor,
                   const PlatformPoolStatistics& statistics) {
  MetricsWriter all(snapshot, {{"bobbin.executor", executor}});
  AddTasks(all, statistics);
  all.Gauge({.name = "bobbin.task.threads", .help = "Threads that exist now.", .unit = "{thread}"},
            statistics.threads);
  all.Gauge({.name = "bobbin.task.threads_peak",
             .help = "Threads that existed at once, at most.",
             .unit = "{thread}"},
            statistics.threads_peak);
  all.Counter({.name = "bobbin.task.ran_by_caller", .help = "Tasks that their caller has run."},
              statistics.ran_by_caller);
  all.Counter(kDropped, statistics.discarded);
  all.Counter({.name = "bobbin.task.taken_back", .help = "Tasks whose callers were to stop."},
              statistics.taken_back);
}

void AddStatistics(MetricsSnapshot& snapshot, std::string_view executor,
                   const ExecutorStatistics& statistics) {
  MetricsWriter all(snapshot, {{"bobbin.executor", executor}});
  AddTasks(all, statistics);
  all.Gauge({.name = "bobbin.task.delayed",
             .help = "Tasks that wait for their time or their next attempt now.",
             .unit = "{task}"},
            statistics.delayed);
  all.Counter({.name = "bobbin.task.submitted", .help = "Tasks that were given to it."},
              statistics.submitted);
  all.Counter({.name = "bobbin.task.failed", .help = "Tasks that returned an error, or threw."},
              statistics.failed);
  all.Counter(kDropped, statistics.dropped);
  all.Counter({.name = "bobbin.task.abandoned",
               .help = "Tasks that were still running at the end of the shutdown."},
              statistics.abandoned);
  all.Counter({.name = "bobbin.task.retried", .help = "Attempts that failed and were repeated."},
              statistics.retried);
  all.Counter({.name = "bobbin.task.uncaught", .help = "Failures that nobody has asked for."},
              statistics.uncaught);
  all.Counter({.name = "bobbin.task.timed",
               .help = "Tasks of which the times were taken: of some executors not all."},
              statistics.timed);
}

void AddStatistics(MetricsSnapshot& snapshot, std::string_view sink,
                   const BatchStatistics& statistics) {
  MetricsWriter all(snapshot, {{"bobbin.sink", sink}});
  all.Counter({.name = "bobbin.sink.added", .help = "Records that a sink took."}, statistics.added);
  all.Counter({.name = "bobbin.sink.written", .help = "Records written or sent."},
              statistics.written);
  all.Counter({.name = "bobbin.sink.failed", .help = "Records given up because writing failed."},
              statistics.failed);
  all.Gauge({.name = "bobbin.sink.queued", .help = "Records that wait now."}, statistics.queued);
  all.Counter({.name = "bobbin.sink.dropped", .help = "Records dropped."}, statistics.dropped);
}

MetricsSource MeasureRuntime(Metrics& metrics, Runtime& runtime) {
  return metrics.AddSource([&runtime](MetricsSnapshot& snapshot) {
    AddStatistics(snapshot, runtime.Statistics());
    for (const Executor* executor : runtime.executors().All()) {
      AddStatistics(snapshot, executor->name(), executor->Statistics());
    }
  });
}

MetricsSource MeasurePool(Metrics& metrics, const PlatformPool& pool) {
  return metrics.AddSource([&pool](MetricsSnapshot& snapshot) {
    AddStatistics(snapshot, pool.name(), pool.Statistics());
  });
}

}  // namespace bobbin
