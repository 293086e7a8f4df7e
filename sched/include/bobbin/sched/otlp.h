// SPDX-License-Identifier: Apache-2.0
//
// OtlpSpans: a sink that sends spans to a collector of OpenTelemetry, as OTLP in JSON.
//
// It makes the bodies of `POST /v1/traces` and hands them to `send`, one after the other, on a
// platform thread of its own. What does not fit into the queue is dropped and counted.
//
//   Called from   as JsonLines.
//   Suspends      as JsonLines; `send` may block, or wait as a platform thread does.
//   Errors        Of `send`: UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED are tried again,
//                 with pauses that double, until the attempts are used up; after any other the
//                 batch is given up. Stop cuts the pauses short, and makes the next attempt the
//                 last. Stop, DEADLINE_EXCEEDED: the budget is spent.
//   Lifetime      as JsonLines.
//
// Example:
//   bobbin::OtlpSpans::Make({.send = post_to_collector, .service_name = "shop"})

#ifndef BOBBIN_SCHED_OTLP_H_
#define BOBBIN_SCHED_OTLP_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/sched/attribute.h>
#include <bobbin/sched/batch_statistics.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/span.h>

namespace bobbin {

struct OtlpOptions {
  // Sends a body; called with a deadline scope of `attempt_max`.
  absl::AnyInvocable<absl::Status(std::string_view body)> send;
  // What the spans come from.
  std::string service_name = "bobbin";
  std::vector<Attribute> resource = {};
  size_t queue_max = 4096;
  size_t batch_max = 512;
  // So long a span waits for others at most.
  std::chrono::nanoseconds interval = std::chrono::seconds(5);
  int attempts_max = 5;
  std::chrono::nanoseconds attempt_max = std::chrono::seconds(10);
  // Before the second attempt; each further pause is twice as long.
  std::chrono::nanoseconds first_pause = std::chrono::seconds(1);
  // For Stop and the destructor.
  std::chrono::nanoseconds stop_budget = std::chrono::seconds(5);
};

class OtlpSpans final : public SpanSink {
 private:
  struct Core;

 public:
  // REQUIRES: options.send; attempts_max > 0.
  static std::shared_ptr<OtlpSpans> Make(OtlpOptions options);
  explicit OtlpSpans(std::unique_ptr<Core> core);  // For Make.
  OtlpSpans(const OtlpSpans&) = delete;
  OtlpSpans& operator=(const OtlpSpans&) = delete;
  ~OtlpSpans() override;

  void Add(SpanRecord span) override;

  // Waits until what was added before is sent or given up.
  absl::Status Flush();
  // Sends what is there; what comes later is dropped.
  absl::Status Stop();
  // Has it stop with the program, among the resources, within what is left for those, whatever its
  // `stop_budget`. The hook must go before this does.
  StopHook StopWith(Lifecycle& life);
  BatchStatistics Statistics() const;

  // The body that reports `spans`.
  static std::string BodyOf(std::string_view service_name, std::span<const Attribute> resource,
                            std::span<const SpanRecord> spans);

 private:
  const std::unique_ptr<Core> core_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_OTLP_H_
