// SPDX-License-Identifier: Apache-2.0
//
// OrderAddresses: the order in which the addresses of a host should be tried (RFC 6724).
//
// The kernel is asked from which address of this host it would send to each, by connecting a
// datagram socket, which sends nothing. Then: those that no route leads to are last; those go first
// whose reach is that of their sender, then those of the same kind, then by the table of the RFC,
// then those of smaller reach; what is equal stays as it was.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          Three system calls an address; none for a single one.

#ifndef BOBBIN_IO_SRC_ADDRESS_ORDER_H_
#define BOBBIN_IO_SRC_ADDRESS_ORDER_H_

#include <optional>
#include <vector>

#include <bobbin/io/address.h>

namespace bobbin::io::internal {

void OrderAddresses(std::vector<SocketAddress>& addresses);

// The same for known senders, by index; empty where no route leads.
std::vector<SocketAddress> OrderedBySender(
    const std::vector<SocketAddress>& addresses,
    const std::vector<std::optional<SocketAddress>>& senders);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_ADDRESS_ORDER_H_
