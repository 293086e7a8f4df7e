// SPDX-License-Identifier: Apache-2.0
//
// ManagementClient: a connection of a management server, from its first byte to its end.
//
// States, in this order; a client that is one too many begins with the second one:
//
//   kReading    its request comes, until the budget is over
//   kWriting    the answer goes, within a budget of its own
//   kLingering  what else the client sends is thrown away until it closes: a close with bytes that
//               nobody has read would take the answer back
//   kEnded
//
//   Called from   the management server's thread.
//   Suspends      only where Answer of its pages does: the socket does not block.

#ifndef BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CLIENT_H_
#define BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include <bobbin/core/deadline.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/management_server.h>

#include "io/src/http/head.h"
#include "io/src/management/management_pages.h"

namespace bobbin::io::internal {

class ManagementClient {
 public:
  ManagementClient(FileDescriptor fd, const ManagementOptions& options)
      : fd_(std::move(fd)), options_(options), deadline_(Deadline::After(options.request_budget)) {}

  int fd() const { return fd_.get(); }
  // What poll should look for.
  short events() const;
  Deadline deadline() const { return deadline_; }
  bool has_ended() const { return state_ == State::kEnded; }

  // Answers without having read. REQUIRES: it has not been answered.
  void Refuse(const ManagementAnswer& answer);
  // Goes on as far as it can, after poll has said that it can.
  void GoOn(const ManagementPages& pages);
  // Its deadline has passed.
  void Expire();

 private:
  enum class State : uint8_t { kReading, kWriting, kLingering, kEnded };

  void Read(const ManagementPages& pages);
  void Write();
  void Linger();
  void Begin(std::string answer);

  FileDescriptor fd_;
  const ManagementOptions& options_;
  Deadline deadline_;
  State state_ = State::kReading;
  http::internal::HeadScan scan_;
  std::string request_;
  std::string answer_;
  size_t written_ = 0;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_CLIENT_H_
