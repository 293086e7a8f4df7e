// SPDX-License-Identifier: Apache-2.0
//
// Resolver: the addresses of a host's name.
//
// Asked in this order: numeric addresses are what they are; the hosts file; `localhost` and all
// below it are this host; then the name servers, for both families at once. TcpStream::Connect uses
// Resolver::Default(); make one of your own to have a cache, or other files or servers.
//
// Which names are asked for. A name with a dot at its end, that one only. Others also with the
// suffixes of the search list: after the name itself, if that has `ndots` dots (one, if nothing
// else is said), else before it. The search goes on only where there is no such name; one that
// exists without an address ends it, and so does a server that fails: another host is not an
// answer. (The C library goes on in both cases.) For names that come from a configuration use
// SearchList::kIgnored.
//
// Both families. One that has addresses is an answer, whatever comes of the other one, which is
// waited for no longer than `other_family_wait` (RFC 8305). That there is no such name is one as
// soon as it is said of IPv4; said of IPv6, it waits for IPv4, because some servers say so of names
// that have no IPv6 address (RFC 4074). The addresses are in the order in which
// they should be tried (RFC 6724): those that no route leads to are last.
//
// Answers are taken from a server only if number and question are those that were asked; others are
// ignored. Truncated ones are asked for again over TCP. A server that does not answer, fails or
// refuses is followed by the next one.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block.
//   Suspends      Resolve, unless the answer is known.
//   Cancellation  Resolve returns CANCELLED or DEADLINE_EXCEEDED; others who wait for the same name
//                 go on waiting for it. When nobody is left the servers are not asked any more.
//   Errors        INVALID_ARGUMENT: the text is no name; it may look like an address, but be none.
//                 NOT_FOUND: there is no such name. FAILED_PRECONDITION: the name exists, and has
//                 no address (of that family). UNAVAILABLE: the servers fail (SERVFAIL), or do not
//                 answer; the text says which. PERMISSION_DENIED: they refuse. UNIMPLEMENTED: they
//                 do not know how. DATA_LOSS: they answer nonsense. RESOURCE_EXHAUSTED: there is no
//                 descriptor or no virtual thread left.
//   Order         Equal questions of virtual threads that are asked at once are asked once.
//   Lifetime      Must outlive every call.
//   Cost          A question takes a virtual thread, a look at two files on a platform thread,
//                 three descriptors, and what the servers take. A cached answer: a mutex.
//
// Who owns what. c-ares sends the questions and takes the answers. Its channel must not be used
// from two threads, so each question for one family has one of its own, which lies on the stack of
// the virtual thread that asks it, and lives until it is answered. Nothing of it is shared: that
// one question is given up cannot touch another one, and each one comes from a port of its own,
// which a forger would have to guess. c-ares reads no file: both are read here, on a platform
// thread, and again when they have changed, which each question looks for.
//
// Example:
//   auto addresses = bobbin::io::Resolver::Default().Resolve({.port = 80}, "example.org");

#ifndef BOBBIN_IO_RESOLVER_H_
#define BOBBIN_IO_RESOLVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include <bobbin/io/address.h>

namespace bobbin::io {

namespace internal {
class ResolverCore;
}

enum class Families : uint8_t { kBoth, kIpv4, kIpv6 };

enum class SearchList : uint8_t {
  kUsed,     // A name may be short for one below a suffix of the search list.
  kIgnored,  // A name means itself.
};

struct ResolverOptions {
  std::string resolv_conf = "/etc/resolv.conf";
  std::string hosts = "/etc/hosts";
  // Asked instead of those in `resolv_conf`.
  std::vector<SocketAddress> servers = {};
  // How long a server may take; 0: as `resolv_conf` says, or 5 s.
  std::chrono::nanoseconds attempt{0};
  // How often those that do not answer are asked; 0: as `resolv_conf` says, or twice.
  int attempts = 0;
  // How long the addresses of one family wait for those of the other one.
  std::chrono::nanoseconds other_family_wait = std::chrono::milliseconds(50);
  // Names whose answers are kept, each as long as its server allows, also that there is no such
  // name or address; the oldest make room. All are dropped when a file has changed. 0: no cache.
  size_t cached_max = 0;
  // What is kept at most for so long, whatever its server allows.
  std::chrono::nanoseconds cached_for_max = std::chrono::hours(1);
};

struct ResolveOptions {
  Families families = Families::kBoth;
  SearchList search = SearchList::kUsed;
  // Of the addresses that are returned.
  uint16_t port = 0;
};

struct ResolverStatistics {
  uint64_t asked = 0;    // Questions for which files and servers were asked.
  uint64_t shared = 0;   // Calls that got the answer to a question of another one.
  uint64_t cached = 0;   // Calls that were answered out of the cache.
  size_t in_flight = 0;  // Questions that are being asked now.
};

class Resolver {
 public:
  explicit Resolver(ResolverOptions options = {});
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  // At least one address, the best one first.
  absl::StatusOr<std::vector<SocketAddress>> Resolve(const ResolveOptions& options,
                                                     std::string_view name);
  absl::StatusOr<std::vector<SocketAddress>> Resolve(std::string_view name) {
    return Resolve({}, name);
  }

  ResolverStatistics Statistics() const;

  // That of the process: the system's files, no cache.
  static Resolver& Default();

 private:
  const std::shared_ptr<internal::ResolverCore> core_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_RESOLVER_H_
