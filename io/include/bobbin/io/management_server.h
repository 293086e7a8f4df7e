// SPDX-License-Identifier: Apache-2.0
//
// ManagementServer: looks into a runtime over HTTP, also when nothing else in it moves.
//
// In the library bobbin::management. It has one OS thread of its own and nothing else: no carrier,
// no virtual thread and no pool has to be free for it to answer. What the program itself serves
// belongs into http::Server, which is faster and takes bodies.
//
//   /              which pages there are
//   /health        what the two pages below say together: 200 if both do
//   /health/live   503 when a carrier is stuck, with its number; else 200
//   /health/ready  503 once the runtime's stop has begun, or while spawners wait at the limit of
//                  virtual threads; else 200
//   /metrics       for Prometheus
//   /dump          every virtual thread (dump.h), as text; as JSON, if Accept names
//                  application/json
//   /dump.json     the same as JSON
//
// GET and HEAD only; one request to a connection. What is after "?" is ignored. Pages are made one
// after another; while one is made, the others wait.
//
// Pages show names, stacks and numbers to anyone who can connect: there is no password and no TLS.
// Leave it at the loopback address, or have something before it that decides who may ask.
//
//   Called from   any thread.
//   Suspends      Stop, StopLast's hook and the destructor block the OS thread until its thread has
//                 ended: at once, or after the page that is just being made.
//   Cancellation  ignored.
//   Errors        Start: INVALID_ARGUMENT for an address or a limit that cannot be,
//                 FAILED_PRECONDITION when the port is taken, else what the system says, with the
//                 address. A client gets 400, 404, 405, 408, 431 or 505 with a line that says why,
//                 and 503 when there are too many clients.
//   Lifetime      The runtime and the metrics must outlive it. Handed to StopLast, it ends by
//                 itself before the runtime does.
//   Cost          an OS thread that sleeps. A carrier pays for a dump what dump.h says, and for the
//                 other pages nothing.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(
//       auto management,
//       bobbin::io::ManagementServer::Start(*bobbin::CurrentRuntimeOrNull(),
//                                           {.listen = "127.0.0.1:9090"}));
//   bobbin::io::ManagementServer::StopLast(std::move(management));

#ifndef BOBBIN_IO_MANAGEMENT_SERVER_H_
#define BOBBIN_IO_MANAGEMENT_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/runtime.h>

namespace bobbin::io {

namespace internal {
class ManagementCore;
}  // namespace internal

struct ManagementOptions {
  // A numeric host and a port; port 0: any that is free.
  std::string listen = "127.0.0.1:0";
  // What /metrics shows; null: the runtime's own numbers. A source of these metrics that does not
  // return keeps the server from answering, too: without them nothing of the program's can.
  const Metrics* metrics = nullptr;
  // How long a carrier is held before it is called stuck. The watchdog (watchdog.h) measures that;
  // where it is off, no carrier is ever called so.
  std::chrono::nanoseconds stuck_after = std::chrono::seconds(1);
  // How long carriers may take to describe their threads for a dump.
  std::chrono::nanoseconds dump_budget = std::chrono::seconds(2);
  // How long a client may take to send its request, and again to take the answer.
  std::chrono::nanoseconds request_budget = std::chrono::seconds(5);
  // Clients at once; as many more are told that there are too many, others wait in the kernel.
  size_t connections_max = 16;
  // Of a request's line and header.
  size_t header_bytes_max = size_t{8} << 10;
};

class ManagementServer {
 public:
  // Listens and answers from now on.
  static absl::StatusOr<std::unique_ptr<ManagementServer>> Start(Runtime& runtime,
                                                                 ManagementOptions options = {});
  // Leaves it to its runtime, where it answers until the last phase of the stop. Hooks of that
  // phase are called in the opposite order of their registration: whoever comes first goes last.
  static void StopLast(std::unique_ptr<ManagementServer> server);
  // For Start.
  explicit ManagementServer(std::unique_ptr<internal::ManagementCore> core);
  ManagementServer(const ManagementServer&) = delete;
  ManagementServer& operator=(const ManagementServer&) = delete;
  // Stops it.
  ~ManagementServer();

  // Cuts off who is connected, and ends its thread. Again: does nothing. REQUIRES: one at a time.
  void Stop();

  const SocketAddress& local_address() const;

 private:
  std::unique_ptr<internal::ManagementCore> core_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_MANAGEMENT_SERVER_H_
