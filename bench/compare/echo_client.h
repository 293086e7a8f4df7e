// SPDX-License-Identifier: Apache-2.0
//
// EchoClient: the other end of the echo workload's connections, in a process of its own, so that
// what it costs is not counted for the server.
//
//   Called from   Start, Finish: the thread that starts it, a foreign one.
//   Suspends      Finish blocks.

#ifndef BOBBIN_BENCH_COMPARE_ECHO_CLIENT_H_
#define BOBBIN_BENCH_COMPARE_ECHO_CLIENT_H_

#include <chrono>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "bench/compare/child_process.h"
#include "bench/echo/echo_load.h"

namespace bobbin::compare {

// How a process that is an echo client is told to be one.
inline constexpr std::string_view kEchoClientFlag = "--echo-client";

class EchoClient {
 public:
  // Starts a client that connects and sends as `options` say.
  static absl::StatusOr<EchoClient> Start(const bench::LoadOptions& options);

  // Waits until it has measured. ABORTED when `goes_on`, which is called several times a second,
  // says no. UNAVAILABLE when it had to do with a server that did not answer as it should.
  absl::StatusOr<bench::LoadResult> Finish(absl::FunctionRef<bool()> goes_on);

 private:
  explicit EchoClient(ChildProcess process) : process_(std::move(process)) {}

  ChildProcess process_;
};

// The other side: what the process started by Start does. Returns its exit code.
int RunEchoClientHere(std::string_view options);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_ECHO_CLIENT_H_
