// SPDX-License-Identifier: Apache-2.0
//
// Server: takes connections and runs a handler for each, until it is drained.
//
// Every connection is served by a virtual thread of its own, named after the server and the
// connection's number, on each carrier in turn. A loop on every carrier accepts. At the limit of
// connections nobody accepts any more: the peers wait in the kernel's queue and are served when
// others have gone; nobody is accepted and turned away.
//
// A handler says when its connection is idle, that is between requests, so that a drain can tell:
// idle connections are ended at once, busy ones may finish. One that never says so is busy.
//
//   Called from   The constructor, Drain and the destructor: a virtual thread of a runtime with an
//                 I/O poller, Drain one at a time. Wait, Statistics: any thread. ServerConnection:
//                 its handler.
//   Suspends      Wait, Drain and the destructor.
//   Cancellation  Wait returns CANCELLED or DEADLINE_EXCEEDED; the server goes on. Drain,
//                 interrupted, gives busy connections no more time. The destructor ignores both.
//   Errors        Of a handler: its connection ends, and it is counted. It is written to standard
//                 error, as is an exception, unless it may be the peer's doing (UNAVAILABLE,
//                 OUT_OF_RANGE, DEADLINE_EXCEEDED) or this side's wish (CANCELLED, ABORTED). Of
//                 accepting: shortages are waited out, told once and counted; what would not go
//                 away ends the server, and Wait returns it.
//   Lifetime      What the handler refers to must outlive the server. The destructor cancels the
//                 connections that are left, and waits for them.
//   Cost          A connection: its spawn, and two short locks.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("0.0.0.0:7000"));
//   bobbin::io::Server server({.name = "echo"}, std::move(listener), Echo);
//   BOBBIN_RETURN_IF_ERROR(stop.Wait());
//   const bobbin::io::DrainResult result = server.Drain({.grace = 10s});

#ifndef BOBBIN_IO_SERVER_H_
#define BOBBIN_IO_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/condition.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/task_group.h>

namespace bobbin::io {

class Server;

// One connection, as its handler has it.
class ServerConnection : private bobbin::internal::IntrusiveLink {
 public:
  // The handler's, until it returns; it is not moved away.
  TcpStream& stream() { return stream_; }
  // Unique in its server, from 1.
  uint64_t number() const { return number_; }

  // Says that nothing is under way: a drain ends the connection now, as if the peer had finished.
  // What has come by then can still be read.
  void MarkIdle();
  // Says that there is something to do.
  void MarkBusy();
  // Whether the server drains: the handler should come to an end.
  bool is_draining() const;

 private:
  friend class Server;
  friend class bobbin::internal::IntrusiveList<ServerConnection>;
  ServerConnection(Server& server, TcpStream stream, uint64_t number)
      : server_(server), stream_(std::move(stream)), number_(number) {}

  Server& server_;
  TcpStream stream_;
  const uint64_t number_;
  // Written by the handler, read by a drain and by statistics; see server.cc.
  bobbin::internal::Atomic<bool> is_idle_{false};
  bool was_ended_idle_ = false;  // Guarded by the server's mutex.
};

struct ServerOptions {
  // Of its virtual threads, and in what it reports.
  std::string name = "server";
  // Connections that are served at once. At least 1.
  int64_t connections_max = 10'000;
  // Stack of each handler's thread, as SpawnOptions::stack_bytes. Where tens of thousands of
  // connections are at rest, 64 KiB in place of 256 KiB save each 400 bytes of page tables.
  size_t stack_bytes = 0;
};

struct DrainOptions {
  // How long busy connections may take to finish.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // How long they may then take to end once they were asked to stop.
  std::chrono::nanoseconds cancel_grace = std::chrono::seconds(1);
};

// What became of the connections that there were.
struct DrainResult {
  uint64_t idle = 0;       // Had nothing to do, and were ended.
  uint64_t finished = 0;   // Ended by themselves.
  uint64_t cancelled = 0;  // Ended after they were asked to stop.
  // Those that have not ended: their threads' names, and their peers.
  std::vector<std::string> stragglers;
};

struct ServerStatistics {
  // Now.
  uint64_t connections = 0;
  uint64_t idle = 0;  // Of them.
  // Ever.
  uint64_t accepted = 0;
  uint64_t failed = 0;         // Whose handler returned an error or threw.
  uint64_t limited = 0;        // Times an accept loop stood still at the limit of connections...
  uint64_t accept_pauses = 0;  // ...and for want of descriptors or memory.
};

class Server {
 public:
  using Handler = absl::AnyInvocable<absl::Status(ServerConnection&) const>;

  // Begins to accept. Many threads call `handler` at the same time.
  Server(ServerOptions options, TcpListener listener, Handler handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Waits until it has been drained, or cannot accept any more.
  absl::Status Wait();

  // Stops accepting, ends idle connections, lets the busy ones finish, then cancels them. Called
  // again, it does the same with those that are left.
  DrainResult Drain(const DrainOptions& options = {});
  // Has it drained when the program stops, among the servers: four fifths of their time are the
  // grace, the rest is for those that are then asked to stop. What became of the connections is
  // told (log.h); who has not ended is an error that names them. The hook must go before this does.
  StopHook StopWith(Lifecycle& life);

  const SocketAddress& local_address() const { return listener_.local_address(); }
  // Looks at every connection, with the server's mutex held.
  ServerStatistics Statistics() const;

 private:
  friend class ServerConnection;

  absl::Status AcceptLoop();
  // Waits for a place for one more connection.
  absl::StatusOr<SemaphorePermit> AwaitPlace();
  void Launch(SemaphorePermit place, TcpStream stream);
  absl::Status Serve(TcpStream stream, uint64_t number);
  void Enter(ServerConnection& connection);
  void Leave(ServerConnection& connection, bool has_failed);
  void StopAccepting();
  std::string NameOf(uint64_t number) const;

  const ServerOptions options_;
  const Handler handler_;
  TcpListener listener_;
  Semaphore places_;
  Event has_ended_;
  // Set once, by a drain or the destructor; read by handlers.
  bobbin::internal::Atomic<bool> is_draining_{false};

  // Of the fields below, and for short system calls: no handler runs under it.
  mutable Mutex mutex_;
  Condition none_left_;
  mutable bobbin::internal::IntrusiveList<ServerConnection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t left_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t limited_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_cancelling_ ABSL_GUARDED_BY(mutex_) = false;
  DrainResult drained_ ABSL_GUARDED_BY(mutex_);

  // Last: they end before what their threads use.
  TaskGroup threads_;
  TaskGroup acceptors_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_SERVER_H_
