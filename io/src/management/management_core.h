// SPDX-License-Identifier: Apache-2.0
//
// ManagementCore: the thread of a management server, and what it looks at.
//
// The thread sleeps in poll, on the listener, the clients and an eventfd that ends it. It holds a
// spare descriptor: when the process has no more, the spare one makes room for a client.
//
//   Called from   Start, Stop: the server's owner, one at a time.
//   Suspends      Stop blocks the OS thread until the other one has ended.

#ifndef BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CORE_H_
#define BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CORE_H_

#include <poll.h>
#include <pthread.h>

#include <list>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/management_server.h>

#include "io/src/management/management_client.h"
#include "io/src/management/management_pages.h"

namespace bobbin::io::internal {

class ManagementCore {
 public:
  ManagementCore(Runtime& runtime, ManagementOptions options)
      : runtime_(runtime), options_(std::move(options)), pages_(runtime_, options_) {}
  ManagementCore(const ManagementCore&) = delete;
  ManagementCore& operator=(const ManagementCore&) = delete;
  ~ManagementCore() { Stop(); }

  absl::Status Start();
  void Stop();
  Runtime& runtime() const { return runtime_; }
  const SocketAddress& local_address() const { return local_address_; }

 private:
  absl::Status Listen();
  // The thread.
  void Run();
  // What poll is asked; the eventfd first, then the listener, then each client.
  void CollectQuestions();
  // Until when poll sleeps at most.
  int PauseMilliseconds() const;
  void AcceptAll();
  void ServeClients();
  bool HasRoom() const { return clients_.size() < 2 * options_.connections_max; }

  // Never changes after Start.
  Runtime& runtime_;
  const ManagementOptions options_;
  const ManagementPages pages_;
  FileDescriptor listener_;
  FileDescriptor end_;  // Readable once Stop was called.
  SocketAddress local_address_;
  pthread_t thread_{};
  bool is_running_ = false;  // The owner's.

  // The thread's only.
  FileDescriptor spare_;
  std::list<ManagementClient> clients_;
  std::vector<pollfd> questions_;
  Deadline accepts_again_ = Deadline::At({});  // After a shortage.
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CORE_H_
