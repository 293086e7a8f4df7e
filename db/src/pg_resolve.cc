// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_resolve.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/future.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/platform_pool.h>

namespace bobbin::db::internal {

namespace {

using Addresses = absl::StatusOr<std::vector<std::string>>;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

Addresses LookUp(const std::string& host, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  if (error != 0) {
    return MakeStatus(absl::StatusCode::kUnavailable,
                      fmt::format("resolve {}: {}", host, gai_strerror(error)));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text);
    }
  }
  return addresses;
}

}  // namespace

Addresses ResolveHost(const std::string& host) {
  Addresses number = LookUp(host, AI_NUMERICHOST);  // Asks nobody.
  if (number.ok()) return number;
  using bobbin::internal::BlockingLane;
  PlatformPool* const pool = bobbin::internal::PoolUnlessMayBlock(BlockingLane::kGeneral);
  if (pool == nullptr) return LookUp(host, AI_ADDRCONFIG);
  auto [promise, addresses] = MakePromise<std::vector<std::string>>();
  BOBBIN_RETURN_IF_ERROR(pool->Submit([promise = std::move(promise), host]() mutable {
    promise.Set(LookUp(host, AI_ADDRCONFIG));
  }));
  return addresses.Get();
}

}  // namespace bobbin::db::internal
