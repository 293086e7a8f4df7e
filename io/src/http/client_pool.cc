// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/client_pool.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "io/src/tls_seam.h"

namespace bobbin::io::http::internal {

ClientPool::Lease::~Lease() {
  if (pool_ == nullptr) return;
  if (connection == nullptr) return;
  connection.reset();
  MutexLock hold(pool_->mutex_);
  --pool_->counts_.connections;
}

void ClientPool::Lease::Keep() {
  connection->expiry = Deadline::After(options().idle_duration);
  MutexLock hold(pool_->mutex_);
  if (pool_->is_closed_) return;
  origin_->kept.push_back(std::move(connection));
  ++pool_->counts_.kept;
}

std::shared_ptr<ClientPool::Origin> ClientPool::OriginOf(const Url& url) {
  const std::string name = fmt::format("{} {} {}", url.scheme(), url.host, url.port);
  MutexLock hold(mutex_);
  std::shared_ptr<Origin>& origin = origins_[name];
  if (origin == nullptr) origin = std::make_shared<Origin>(options_.connections_per_origin_max);
  return origin;
}

ClientPool::Connections ClientPool::Sweep(MonotonicTime now) {
  next_sweep_ = now + kSweepEvery;
  Connections expired;
  for (auto& [name, origin] : origins_) {
    auto& kept = origin->kept;
    while (!kept.empty() && kept.front()->expiry.HasPassed(now)) {
      expired.push_back(std::move(kept.front()));
      kept.pop_front();
    }
  }
  std::erase_if(origins_, [](const auto& named) {
    return named.second->kept.empty() && named.second.use_count() == 1;
  });
  counts_.kept -= expired.size();
  counts_.connections -= expired.size();
  return expired;
}

absl::StatusOr<ClientPool::Lease> ClientPool::Acquire(const Url& url) {
  const std::shared_ptr<Origin> origin = OriginOf(url);
  BOBBIN_ASSIGN_OR_RETURN(SemaphorePermit place, origin->places.AcquirePermit());
  Lease lease(shared_from_this(), origin, std::move(place));

  Connections useless;  // Closed behind the lock.
  const MonotonicTime now = MonotonicNow();
  MutexLock hold(mutex_);
  if (now >= next_sweep_) useless = Sweep(now);
  while (!origin->kept.empty() && lease.connection == nullptr) {
    std::unique_ptr<ClientConnection> last = std::move(origin->kept.back());
    origin->kept.pop_back();
    --counts_.kept;
    // Its server may have closed it meanwhile.
    if (last->expiry.HasPassed(now) || !last->transport->IsQuiet()) {
      --counts_.connections;
      useless.push_back(std::move(last));
    } else {
      lease.connection = std::move(last);
      ++counts_.reused;
    }
  }
  return lease;
}

absl::Status ClientPool::Connect(const Url& url, Lease& lease) {
  if (url.is_secure && !options_.tls) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      fmt::format("url {}: the client has no TLS context", url.ToString()));
  }
  auto stream = std::make_unique<TcpStream>();
  BOBBIN_ASSIGN_OR_RETURN(*stream, TcpStream::Connect(url.host, url.port));
  std::unique_ptr<Transport> transport;
  if (url.is_secure) {
    BOBBIN_ASSIGN_OR_RETURN(transport, options_.tls.client_->Connect(*stream, url.host));
  } else {
    transport = std::make_unique<TcpTransport>(*stream);
  }
  auto connection = std::make_unique<ClientConnection>(std::move(stream), std::move(transport));
  MutexLock hold(mutex_);
  // In the place of the one before, if there was one.
  if (lease.connection == nullptr) ++counts_.connections;
  lease.connection = std::move(connection);
  ++counts_.connected;
  return absl::OkStatus();
}

void ClientPool::CountRepeated() {
  MutexLock hold(mutex_);
  ++counts_.repeated;
}

void ClientPool::Close() {
  std::unordered_map<std::string, std::shared_ptr<Origin>> origins;
  Connections kept;
  MutexLock hold(mutex_);
  is_closed_ = true;
  origins.swap(origins_);
  for (auto& [name, origin] : origins) {
    std::move(origin->kept.begin(), origin->kept.end(), std::back_inserter(kept));
    origin->kept.clear();
  }
  counts_.connections -= kept.size();
  counts_.kept = 0;
}

ClientStatistics ClientPool::Statistics() const {
  MutexLock hold(mutex_);
  return counts_;
}

}  // namespace bobbin::io::http::internal
