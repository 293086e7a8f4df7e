// SPDX-License-Identifier: Apache-2.0

#include "sched/src/executor_configuration.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/sched/configuration_key.h>

namespace bobbin::internal {

namespace {

constexpr auto kThreadsMax = static_cast<int64_t>(PlatformPool::kThreadsMax);

const ConfigurationPattern<ThreadKind> kKind(
    {.name = "bobbin.task.executor.<name>.kind",
     .meaning = "On what the tasks of an executor run; wins over what the program asks for.",
     .default_text = "as the program asks",
     .words = {{{"platform", ThreadKind::kPlatform}, {"virtual", ThreadKind::kVirtual}}}});

const ConfigurationPattern<int64_t> kThreads({.name = "bobbin.task.executor.<name>.threads",
                                              .meaning = "Platform threads of an executor.",
                                              .default_text = "8; 2 for scheduling",
                                              .min = 1,
                                              .max = kThreadsMax});

const ConfigurationPattern<int64_t> kMaxThreads(
    {.name = "bobbin.task.executor.<name>.max-threads",
     .meaning = "Platform threads of an executor while its queue is full.",
     .default_text = "as many as threads",
     .min = 1,
     .max = kThreadsMax});

const ConfigurationPattern<absl::Duration> kKeepAlive(
    {.name = "bobbin.task.executor.<name>.keep-alive",
     .meaning = "After so long without work a platform thread above the number of threads ends.",
     .default_text = "1m"});

const ConfigurationPattern<int64_t> kConcurrency(
    {.name = "bobbin.task.executor.<name>.concurrency",
     .meaning = "Tasks of an executor on virtual threads that have begun and not ended, at most.",
     .default_text = "10000",
     .min = 1});

const ConfigurationPattern<int64_t> kQueueCapacity(
    {.name = "bobbin.task.executor.<name>.queue-capacity",
     .meaning = "Tasks of an executor that wait, at most.",
     .default_text = "100000",
     .min = 0});

const ConfigurationPattern<Rejection> kRejection(
    {.name = "bobbin.task.executor.<name>.rejection",
     .meaning = "What happens to a task that comes when the queue of its executor is full.",
     .default_text = "abort",
     .words = {{{"abort", Rejection::kAbort},
                {"caller-runs", Rejection::kCallerRuns},
                {"discard", Rejection::kDiscard},
                {"discard-oldest", Rejection::kDiscardOldest}}}});

const ConfigurationPattern<std::string> kThreadNamePrefix(
    {.name = "bobbin.task.executor.<name>.thread-name-prefix",
     .meaning = "How the names of an executor's threads begin.",
     .default_text = "`<name>-` on platform threads"});

// Reads what is set into `target`.
template <typename T, typename Target, typename Convert>
absl::Status Read(const Configuration& configuration, const ConfigurationPattern<T>& pattern,
                  std::string_view name, Target& target, Convert convert) {
  BOBBIN_ASSIGN_OR_RETURN(std::optional<T> value, configuration.FindFor(pattern, name));
  if (value.has_value()) target = convert(*std::move(value));
  return absl::OkStatus();
}

constexpr auto kAsSize = [](int64_t value) { return static_cast<size_t>(value); };
constexpr auto kAsIs = [](auto value) { return value; };

}  // namespace

absl::Status Configure(const Configuration& configuration, std::string_view name,
                       ExecutorOptions& options) {
  const auto read = [&](const auto& pattern, auto& target, auto convert) {
    return Read(configuration, pattern, name, target, convert);
  };
  BOBBIN_RETURN_IF_ERROR(read(kKind, options.kind, kAsIs));
  BOBBIN_RETURN_IF_ERROR(read(kThreads, options.threads, kAsSize));
  BOBBIN_RETURN_IF_ERROR(read(kMaxThreads, options.threads_max, kAsSize));
  BOBBIN_RETURN_IF_ERROR(read(kKeepAlive, options.keep_alive, [](absl::Duration value) {
    return absl::ToChronoNanoseconds(value);
  }));
  BOBBIN_RETURN_IF_ERROR(read(kConcurrency, options.concurrency, kAsSize));
  BOBBIN_RETURN_IF_ERROR(read(kQueueCapacity, options.queue_max, kAsSize));
  BOBBIN_RETURN_IF_ERROR(read(kRejection, options.rejection, kAsIs));
  BOBBIN_RETURN_IF_ERROR(read(kThreadNamePrefix, options.thread_name_prefix, kAsIs));
  if (options.threads_max != 0 && options.threads_max < options.threads) {
    BOBBIN_ASSIGN_OR_RETURN(const auto max, configuration.FindFor(kMaxThreads, name));
    if (!max.has_value()) {
      options.threads_max = options.threads;
      return absl::OkStatus();
    }
    return configuration.Refuse(kMaxThreads.For(name),
                                fmt::format("it must not be less than {}, which is {}",
                                            kThreads.For(name), options.threads));
  }
  return absl::OkStatus();
}

std::set<std::string> ConfiguredExecutors(const Configuration& configuration) {
  std::set<std::string> names;
  const auto add = [&](const auto& pattern) {
    for (std::string& name : configuration.NamesOf(pattern)) names.insert(std::move(name));
  };
  add(kKind);
  add(kThreads);
  add(kMaxThreads);
  add(kKeepAlive);
  add(kConcurrency);
  add(kQueueCapacity);
  add(kRejection);
  add(kThreadNamePrefix);
  return names;
}

}  // namespace bobbin::internal
