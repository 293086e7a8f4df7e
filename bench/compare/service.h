// SPDX-License-Identifier: Apache-2.0
//
// Service: a server that all trials of a workload use, and which is none of this program's.
//
// It is told by an environment variable, which the trials inherit: its address may hold a password,
// and arguments can be read by everybody. What the user has set there is used; else a server is
// started by a script, with `start FOLDER`, which leaves the address in FOLDER/conninfo; and ended
// with `stop FOLDER`.
//
//   Called from   the thread that runs the trials.
//   Suspends      Start and the destructor block, for as long as a server takes.
//   Errors        Start: UNAVAILABLE, and why there is no server here.
//   Lifetime      the server ends with the object, or with the process.

#ifndef BOBBIN_BENCH_COMPARE_SERVICE_H_
#define BOBBIN_BENCH_COMPARE_SERVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "bench/compare/temporary_directory.h"

namespace bobbin::compare {

struct ServiceKind {
  const char* variable;  // Of the environment: where the server is.
  const char* script;    // Starts and stops one.
};

class Service {
 public:
  static absl::StatusOr<std::unique_ptr<Service>> Start(const ServiceKind& kind);
  // For Start.
  Service(const ServiceKind& kind, TemporaryDirectory folder)
      : kind_(kind), folder_(std::move(folder)) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

 private:
  // Runs the script; an error has its last line.
  absl::Status Call(const std::string& verb) const;

  const ServiceKind kind_;
  const TemporaryDirectory folder_;
  bool is_started_ = false;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_SERVICE_H_
