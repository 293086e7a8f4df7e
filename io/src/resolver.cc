// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/resolver.h>

#include "io/src/host_name.h"
#include "io/src/resolver_core.h"

namespace bobbin::io {

Resolver::Resolver(ResolverOptions options)
    : core_(std::make_shared<internal::ResolverCore>(std::move(options))) {}

Resolver::~Resolver() = default;

absl::StatusOr<std::vector<SocketAddress>> Resolver::Resolve(const ResolveOptions& options,
                                                             std::string_view name) {
  bobbin::internal::Current().CheckMayWait();
  if (const auto address = SocketAddress::Parse(name, options.port); address.ok()) {
    if (options.families == Families::kBoth ||
        address->is_ipv6() == (options.families == Families::kIpv6)) {
      return std::vector<SocketAddress>{*address};
    }
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      fmt::format("resolve {}: it is an address of the other family", name));
  }
  BOBBIN_RETURN_IF_ERROR(internal::CheckHostName(name));
  BOBBIN_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, core_->Resolve(options, name));
  for (SocketAddress& address : addresses) address = address.WithPort(options.port);
  return addresses;
}

ResolverStatistics Resolver::Statistics() const { return core_->Statistics(); }

Resolver& Resolver::Default() {
  // Never destroyed: threads that outlive main may use it.
  static Resolver& resolver = *std::make_unique<Resolver>().release();
  return resolver;
}

}  // namespace bobbin::io
