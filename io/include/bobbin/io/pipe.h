// SPDX-License-Identifier: Apache-2.0
//
// PipeReader, PipeWriter: the two ends of a pipe, for what another process writes or reads.
//
// Within a process a Channel is quicker, and carries values.
//
//   Called from   Virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. One thread at a time. Close, moving and destroying:
//                 nobody may be in a call, or about to begin one; an end that is closed under its
//                 user aborts.
//   Suspends      reads and writes.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What arrived all the same is returned
//                 instead: no byte is lost.
//   Errors        UNAVAILABLE: nobody reads any more; there is no signal. ABORTED: it is closed.
//                 FAILED_PRECONDITION: another thread is in a call. OUT_OF_RANGE: ReadExact met the
//                 end.
//   Order         Bytes, and no boundaries between writes.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns,
//                 not longer.
//   Cost          One system call, and if that finds nothing a park and one more. No allocation.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::io::Pipe pipe, bobbin::io::MakePipe());
//   BOBBIN_RETURN_IF_ERROR(pipe.writer.WriteAll(bytes));

#ifndef BOBBIN_IO_PIPE_H_
#define BOBBIN_IO_PIPE_H_

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/internal/handles.h>
#include <bobbin/io/progress.h>

namespace bobbin::io {

class PipeReader {
 public:
  // Holds nothing; to be assigned to.
  PipeReader() = default;
  // Takes over an end of a pipe, or what can be waited for like one. Its calls do not wait from now
  // on, also not those of others who share the open file. REQUIRES: nobody else uses the
  // descriptor.
  static PipeReader Adopt(FileDescriptor fd);

  // Waits until something comes and returns how much; 0 when all who could write have closed it. An
  // empty buffer gets 0 at once.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  // Fills `buffer`.
  absl::Status ReadExact(std::span<std::byte> buffer);

  void Close();
  // Gives the descriptor away, to a process that is about to start: its calls wait again.
  absl::StatusOr<FileDescriptor> Release();
  // Whether it holds an end, open or closed.
  explicit operator bool() const { return end_ != nullptr; }

 private:
  explicit PipeReader(internal::SocketHandle end) : end_(std::move(end)) {}
  internal::Socket& end() const;

  internal::SocketHandle end_;
};

class PipeWriter {
 public:
  // Holds nothing; to be assigned to.
  PipeWriter() = default;
  // As PipeReader's.
  static PipeWriter Adopt(FileDescriptor fd);

  // Waits until there is room and returns how much was written.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  // Writes all of it.
  absl::Status WriteAll(std::span<const std::byte> bytes);
  // The same, and tells how much was written also if that was not all.
  Progress WriteCounted(std::span<const std::byte> bytes);

  // The reader finds the end behind what was written.
  void Close();
  // As PipeReader's.
  absl::StatusOr<FileDescriptor> Release();
  // Whether it holds an end, open or closed.
  explicit operator bool() const { return end_ != nullptr; }

 private:
  explicit PipeWriter(internal::SocketHandle end) : end_(std::move(end)) {}
  internal::Socket& end() const;

  internal::SocketHandle end_;
};

struct Pipe {
  PipeReader reader;
  PipeWriter writer;
};

// A new one.
absl::StatusOr<Pipe> MakePipe();

}  // namespace bobbin::io

#endif  // BOBBIN_IO_PIPE_H_
