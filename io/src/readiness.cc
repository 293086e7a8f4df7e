// SPDX-License-Identifier: Apache-2.0

#include <poll.h>

#include <cerrno>
#include <string_view>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/io/readiness.h>

#include "io/src/blocking.h"
#include "io/src/op.h"
#include "io/src/pollable.h"
#include "io/src/result.h"

namespace bobbin::io {

namespace {

using bobbin::internal::Thread;
using internal::OpCode;
using internal::Pollable;
using internal::Result;

Result AwaitOnCarrier(Thread& self, int fd, OpCode code) {
  const Pollable pollable = Pollable::Foreign(fd);
  while (true) {
    if (self.ShouldStop()) return internal::WhyStopped(self);
    internal::ParkedOp op(code, pollable, nullptr, 0);
    const Result result = op.Run(self);
    if (!internal::IsWorthRepeating(result)) return result;
  }
}

absl::Status Await(int fd, OpCode code, short events, std::string_view operation) {
  Thread& self = bobbin::internal::Current();
  self.CheckMayWait();
  Result result = -EBADF;  // Of a negative number, about which not every poller may be asked.
  if (fd >= 0) {
    result = self.role() == Role::kVirtual ? AwaitOnCarrier(self, fd, code)
                                           : internal::BlockingAwait(self, fd, events);
  }
  return result >= 0 ? absl::OkStatus() : internal::ResultStatus(result, operation);
}

}  // namespace

absl::Status WaitReadable(int fd) {
  return Await(fd, OpCode::kAwaitReadable, POLLIN, "wait until readable");
}

absl::Status WaitWritable(int fd) {
  return Await(fd, OpCode::kAwaitWritable, POLLOUT, "wait until writable");
}

}  // namespace bobbin::io
