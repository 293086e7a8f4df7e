// SPDX-License-Identifier: Apache-2.0
//
// Names: a connection by name, and what a resolver says.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/resolver.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/runtime.h>

using namespace std::chrono_literals;

namespace {

// [connect]
absl::StatusOr<std::string> Greet(std::string_view host, uint16_t port) {
  bobbin::DeadlineScope scope(2s);  // For the name, the connection and the answer together.
  BOBBIN_ASSIGN_OR_RETURN(auto stream, bobbin::io::TcpStream::Connect(host, port));
  std::string greeting(5, '\0');
  BOBBIN_RETURN_IF_ERROR(stream.ReadExact(std::as_writable_bytes(std::span(greeting))));
  return greeting;
}
// [/connect]

// [resolve]
bobbin::io::Resolver& Names() {
  static bobbin::io::Resolver resolver({.cached_max = 1000});
  return resolver;
}

absl::Status Print(std::string_view host) {
  using bobbin::io::SearchList;
  BOBBIN_ASSIGN_OR_RETURN(const std::vector<bobbin::io::SocketAddress> addresses,
                          Names().Resolve({.search = SearchList::kIgnored, .port = 80}, host));
  for (const auto& address : addresses) fmt::print("{} is at {}\n", host, address.ToString());
  return absl::OkStatus();
}
// [/resolve]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  bobbin::VirtualThread server = bobbin::Spawn([&listener]() -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(auto peer, listener.Accept());
    return peer.WriteAll(std::as_bytes(std::span(std::string_view("hello"))));
  });
  BOBBIN_ASSIGN_OR_RETURN(const std::string greeting,
                          Greet("localhost", listener.local_address().port()));
  BOBBIN_RETURN_IF_ERROR(server.Join());
  if (greeting != "hello") return absl::InternalError("who was that?");
  return Print("localhost");
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
