// SPDX-License-Identifier: Apache-2.0

#include "io/src/child_process.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>
#include <bobbin/sched/internal/notice.h>

#include "io/src/printable.h"

namespace bobbin::io::internal {

namespace {

PipeReader ReaderOf(FileDescriptor& fd) {
  return fd.is_open() ? PipeReader::Adopt(std::move(fd)) : PipeReader();
}

PipeWriter WriterOf(FileDescriptor& fd) {
  return fd.is_open() ? PipeWriter::Adopt(std::move(fd)) : PipeWriter();
}

}  // namespace

ChildProcess::ChildProcess(const ProcessOptions& options, SpawnedProcess spawned)
    : program_(options.program),
      stop_budget_(options.stop_budget),
      id_(spawned.id),
      handle_(std::move(spawned.handle)),
      input_(WriterOf(spawned.streams[0])),
      output_(ReaderOf(spawned.streams[1])),
      error_(ReaderOf(spawned.streams[2])) {}

ChildProcess::~ChildProcess() {
  const CancelShield shield;
  const absl::StatusOr<std::optional<ProcessEnd>> end = TryWait();
  if (!end.ok() || end->has_value()) return;
  bobbin::internal::Tell(
      {.text = fmt::format("process {} ({}) runs although nobody holds it any more: it is ended",
                           id_, Printable(program_))});
  // It may have waited for the end of its input.
  if (input_) input_.Close();
  Stop(stop_budget_).IgnoreError();
}

absl::StatusOr<std::optional<ProcessEnd>> ChildProcess::TryWait() {
  const MutexLock lock(lock_);
  if (!end_.has_value()) {
    siginfo_t info{};
    int result;
    do {
      result = ::waitid(P_PIDFD, static_cast<id_t>(handle_.get()), &info, WEXITED | WNOHANG);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
      end_ = MakeStatus(absl::StatusCode::kInternal,
                        fmt::format("wait for process {}: somebody else has taken its end", id_));
    } else if (info.si_pid == 0) {
      return std::nullopt;
    } else if (info.si_code == CLD_EXITED) {
      end_ = ProcessEnd{.code = info.si_status};
    } else {
      end_ = ProcessEnd{.code = -1, .signal = info.si_status};
    }
  }
  if (!end_->ok()) return end_->status();
  return std::optional<ProcessEnd>(**end_);
}

absl::StatusOr<ProcessEnd> ChildProcess::Wait() {
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const std::optional<ProcessEnd> end, TryWait());
    if (end.has_value()) return *end;
    BOBBIN_RETURN_IF_ERROR(WaitReadable(handle_.get()));
  }
}

absl::Status ChildProcess::Send(int signal) {
  if (::syscall(SYS_pidfd_send_signal, handle_.get(), signal, nullptr, 0) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  const std::string operation = fmt::format("send signal {} to process {}", signal, id_);
  if (error != ESRCH) return ResultStatus(-error, operation);
  return MakeStatus(absl::StatusCode::kFailedPrecondition, operation + ": it has ended");
}

absl::StatusOr<ProcessEnd> ChildProcess::Stop(std::chrono::nanoseconds budget) {
  // That it has ended meanwhile is no failure.
  Send(SIGTERM).IgnoreError();
  absl::StatusOr<ProcessEnd> end;
  {
    const DeadlineScope scope(budget);
    end = Wait();
  }
  if (!absl::IsDeadlineExceeded(end.status())) return end;
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Send(SIGKILL).IgnoreError();
  return Wait();
}

}  // namespace bobbin::io::internal
