// SPDX-License-Identifier: Apache-2.0
//
// Workload: something to do that shows how the two kinds of threads differ, or that they do not.
//
// Each runs one body on either kind. It runs in a process of its own, so that it may use all of it.

#ifndef BOBBIN_BENCH_COMPARE_WORKLOAD_H_
#define BOBBIN_BENCH_COMPARE_WORKLOAD_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

#include "bench/compare/service.h"
#include "bench/compare/trial.h"

namespace bobbin::compare {

struct Workload {
  std::string_view name;
  std::string_view title;    // What its threads do, in one line,
  std::string_view latency;  // and what is measured as its latency.

  // More threads than this show nothing more.
  size_t concurrency_max;

  absl::StatusOr<Figures> (*run)(const Trial& trial);

  // Starts the server that all its trials use. Null: they need none.
  absl::StatusOr<std::unique_ptr<Service>> (*serve)() = nullptr;
};

extern const Workload kWaitWorkload;
extern const Workload kEchoWorkload;
extern const Workload kSqliteWorkload;
extern const Workload kAsyncWorkload;
extern const Workload kPostgresWorkload;
extern const Workload kMySqlWorkload;
extern const Workload kCpuWorkload;

inline constexpr std::array kWorkloads = {&kWaitWorkload,   &kEchoWorkload,     &kAsyncWorkload,
                                          &kSqliteWorkload, &kPostgresWorkload, &kMySqlWorkload,
                                          &kCpuWorkload};

// Of the environment: where the servers are that trials use.
inline constexpr char kPostgresVariable[] = "BOBBIN_COMPARE_POSTGRES";
inline constexpr char kMySqlVariable[] = "BOBBIN_COMPARE_MYSQL";

// The workload of that name, or null.
const Workload* WorkloadNamed(std::string_view name);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_WORKLOAD_H_
