// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/executor_crew.h"

#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/executors.h>

namespace bobbin::compare {
namespace {

constexpr std::string_view kMembers = "members";

ThreadKind ThreadKindOf(Kind kind) {
  return kind == Kind::kVirtual ? ThreadKind::kVirtual : ThreadKind::kPlatform;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorCrew>> ExecutorCrew::Make(
    Kind kind, size_t members, const std::vector<Places>& others) {
  RuntimeOptions options = MeasuredRuntime();
  const auto add = [&options, kind](std::string_view name, size_t places) {
    options.executors.named.emplace(
        name,
        ExecutorOptions{.kind = ThreadKindOf(kind), .threads = places, .concurrency = places});
  };
  add(kMembers, members);
  for (const Places& places : others) add(places.executor, places.count);
  BOBBIN_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create(std::move(options)));
  return std::make_unique<ExecutorCrew>(std::move(runtime));
}

absl::Status ExecutorCrew::Start(std::string_view name, Body body) {
  return Named(kMembers).Submit({.name = name},
                                [body = std::move(body)]() mutable { std::move(body)(); });
}

void ExecutorCrew::Join() { static_cast<void>(runtime_->executors().AwaitIdle()); }

Executor& ExecutorCrew::Named(std::string_view name) {
  absl::StatusOr<Executor*> found = runtime_->executors().Find(name);
  BOBBIN_CHECK(found.ok(), MessageOf(found.status()));
  return **found;
}

}  // namespace bobbin::compare
