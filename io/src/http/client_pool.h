// SPDX-License-Identifier: Apache-2.0
//
// ClientPool: the connections of a client. ClientConnection: one of them. ClientLease: the right to
// one connection of an origin.
//
// A lease is a permit of its origin's semaphore; who has it takes the connection that was kept
// last and is still open, or makes one. So the permits are the limit of connections in use, and no
// more are kept than there are permits.
//
//   Called from   any thread.
//   Suspends      Acquire, while the origin has no permit; Connect.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED, and no lease is held.

#ifndef BOBBIN_IO_SRC_HTTP_CLIENT_POOL_H_
#define BOBBIN_IO_SRC_HTTP_CLIENT_POOL_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/tcp.h>

#include "io/src/http/body_reader.h"
#include "io/src/http/head.h"
#include "io/src/http/input_buffer.h"
#include "io/src/http/output.h"
#include "io/src/http/transport.h"
#include "io/src/http/url.h"

namespace bobbin::io::http::internal {

struct ClientConnection {
  // REQUIRES: `over` is over `connected`, and stays so where that is.
  ClientConnection(std::unique_ptr<TcpStream> connected, std::unique_ptr<Transport> over)
      : stream(std::move(connected)),
        transport(std::move(over)),
        output(*transport, std::chrono::nanoseconds::max()),
        body(input, *transport) {}
  ~ClientConnection() { transport->Close(); }

  const std::unique_ptr<TcpStream> stream;
  const std::unique_ptr<Transport> transport;
  InputBuffer input;
  Output output;
  BodyReader body;
  ResponseHead head;
  // When it was kept for too long.
  Deadline expiry = Deadline::Never();
};

class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  struct Origin {
    explicit Origin(int64_t connections_max) : places(connections_max) {}
    Semaphore places;
    std::deque<std::unique_ptr<ClientConnection>> kept;  // Guarded by the pool's mutex.
  };

  // The right to one connection of an origin, and the connection.
  class Lease {
   public:
    Lease(std::shared_ptr<ClientPool> pool, std::shared_ptr<Origin> origin, SemaphorePermit place)
        : pool_(std::move(pool)), origin_(std::move(origin)), place_(std::move(place)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    // Gives the connection back, to be used again.
    void Keep();

    const ClientOptions& options() const { return pool_->options_; }

    std::unique_ptr<ClientConnection> connection;

   private:
    friend class ClientPool;
    std::shared_ptr<ClientPool> pool_;
    std::shared_ptr<Origin> origin_;
    SemaphorePermit place_;
  };

  explicit ClientPool(ClientOptions options) : options_(options) {}

  // A place at the origin; with a connection, if one was kept.
  absl::StatusOr<Lease> Acquire(const Url& url);
  // Gives the lease a new connection.
  absl::Status Connect(const Url& url, Lease& lease);
  void CountRepeated();
  // Closes what is kept, and keeps nothing any more.
  void Close();

  ClientStatistics Statistics() const;

 private:
  using Connections = std::vector<std::unique_ptr<ClientConnection>>;

  std::shared_ptr<Origin> OriginOf(const Url& url);
  // Takes out, of all origins, what was kept for too long; and origins that nobody uses. The caller
  // closes the connections, without the lock.
  Connections Sweep(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Between two sweeps. Not tuned.
  static constexpr std::chrono::seconds kSweepEvery{1};

  const ClientOptions options_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Origin>> origins_ ABSL_GUARDED_BY(mutex_);
  ClientStatistics counts_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime next_sweep_ ABSL_GUARDED_BY(mutex_){};
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_CLIENT_POOL_H_
