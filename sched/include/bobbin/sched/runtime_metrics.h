// SPDX-License-Identifier: Apache-2.0
//
// Runtime metrics: what a runtime, its executors and its pools count, as metrics.
//
// The runtime counts for itself, whether it is asked or not (statistics.h); a snapshot of the
// metrics asks it. docs/observability.md lists the names.
//
//   Called from   any thread, except carriers' own stacks.
//   Suspends      as Metrics::AddSource.
//   Lifetime      What is measured must outlive the MetricsSource.
//   Cost          A snapshot costs what RuntimeStatistics does; what is measured pays nothing.
//
// Example:
//   const bobbin::MetricsSource source = bobbin::MeasureRuntime(metrics, runtime);

#ifndef BOBBIN_SCHED_RUNTIME_METRICS_H_
#define BOBBIN_SCHED_RUNTIME_METRICS_H_

#include <string_view>

#include <bobbin/sched/batch_statistics.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/statistics.h>

namespace bobbin {

// Adds a runtime's numbers, those of its executors and of its own pools included, to every
// snapshot.
MetricsSource MeasureRuntime(Metrics& metrics, Runtime& runtime);
// The same for a pool, whose name is the attribute bobbin.executor.
MetricsSource MeasurePool(Metrics& metrics, const PlatformPool& pool);

// The numbers themselves, for sources of your own.
void AddStatistics(MetricsSnapshot& snapshot, const RuntimeStatistics& statistics);
void AddStatistics(MetricsSnapshot& snapshot, std::string_view executor,
                   const PlatformPoolStatistics& statistics);
void AddStatistics(MetricsSnapshot& snapshot, std::string_view executor,
                   const ExecutorStatistics& statistics);
// Of a sink: JsonLines, OtlpSpans.
void AddStatistics(MetricsSnapshot& snapshot, std::string_view sink,
                   const BatchStatistics& statistics);

}  // namespace bobbin

#endif  // BOBBIN_SCHED_RUNTIME_METRICS_H_
