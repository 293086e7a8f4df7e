// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/status.h>
#include <bobbin/io/management_server.h>
#include <bobbin/sched/lifecycle.h>

#include "io/src/management/management_core.h"

namespace bobbin::io {

absl::StatusOr<std::unique_ptr<ManagementServer>> ManagementServer::Start(
    Runtime& runtime, ManagementOptions options) {
  auto core = std::make_unique<internal::ManagementCore>(runtime, std::move(options));
  BOBBIN_RETURN_IF_ERROR(core->Start());
  return std::make_unique<ManagementServer>(std::move(core));
}

void ManagementServer::StopLast(std::unique_ptr<ManagementServer> server) {
  Lifecycle& life = server->core_->runtime().lifecycle();
  life.OnStop({.phase = StopPhase::kResources, .name = "management"},
              [server = std::move(server)] {
                server->Stop();
                return absl::OkStatus();
              })
      .Detach();
}

ManagementServer::ManagementServer(std::unique_ptr<internal::ManagementCore> core)
    : core_(std::move(core)) {}
ManagementServer::~ManagementServer() = default;

void ManagementServer::Stop() { core_->Stop(); }
const SocketAddress& ManagementServer::local_address() const { return core_->local_address(); }

}  // namespace bobbin::io
