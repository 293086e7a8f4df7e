// SPDX-License-Identifier: Apache-2.0
//
// WaitReadable, WaitWritable: wait until a descriptor is ready that something else reads or writes.
//
// For descriptors that a library owns and uses by calls that do not wait: those of a database
// client, a pipe, an eventfd. Streams and listeners of bobbin wait by themselves. An end, a peer
// that has gone and an error count as ready: the call that follows tells. So does a regular file,
// always.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block.
//   Suspends      both, unless the descriptor is ready.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. On platform and foreign threads only
//                 a deadline ends a call that blocks.
//   Errors        As errno's canonical code; of a closed descriptor that of EBADF.
//   Order         Any number of threads may wait for one descriptor; all go on when it is ready,
//                 and another one may have been quicker.
//   Lifetime      The descriptor must stay open until the call returns.
//   Cost          With a ring: one entry, one park. With epoll: one system call, and if the
//                 descriptor is not ready, a park and three more. No allocation.
//
// Example:
//   BOBBIN_RETURN_IF_ERROR(bobbin::io::WaitReadable(PQsocket(connection)));
//   PQconsumeInput(connection);

#ifndef BOBBIN_IO_READINESS_H_
#define BOBBIN_IO_READINESS_H_

#include "absl/status/status.h"

namespace bobbin::io {

// Waits until a read would find something.
absl::Status WaitReadable(int fd);
// Waits until a write would find room.
absl::Status WaitWritable(int fd);

}  // namespace bobbin::io

#endif  // BOBBIN_IO_READINESS_H_
