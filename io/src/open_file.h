// SPDX-License-Identifier: Apache-2.0
//
// OpenFile: a descriptor of a file, who uses it now, and what can be done with it.
//
//   Called from   as File.
//   Suspends      as File.

#ifndef BOBBIN_IO_SRC_OPEN_FILE_H_
#define BOBBIN_IO_SRC_OPEN_FILE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/io/file.h>

#include "io/src/file_call.h"
#include "io/src/file_descriptor.h"

namespace bobbin::io::internal {

class OpenFile {
 public:
  OpenFile(FileDescriptor fd, std::string_view path) : fd_(std::move(fd)), path_(path) {}
  // Closes it, if that has not been done.
  ~OpenFile();

  const std::string& path() const { return path_; }

  // Fills `buffers`, or what there is; 0 at the end.
  absl::StatusOr<size_t> ReadAt(std::span<const std::span<std::byte>> buffers, uint64_t offset);
  absl::Status WriteAt(std::span<const std::span<const std::byte>> parts, uint64_t offset);
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Sync(SyncScope scope);
  absl::StatusOr<FileStat> Stat();
  absl::Status Resize(uint64_t size);
  absl::Status Close();

 private:
  // As long as it lives, the descriptor is open.
  class Use {
   public:
    explicit Use(OpenFile& file) : file_(file) {
      // relaxed: counts; who closes has to know by other means that nobody begins.
      file_.users_.fetch_add(1, std::memory_order_relaxed);
      BOBBIN_CHECK(file_.fd_.is_open(), "a file is used that has been closed");
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // Pairs with the acquire in Close.
    ~Use() { file_.users_.fetch_sub(1, std::memory_order_release); }

   private:
    OpenFile& file_;
  };

  FileOperation Trying(std::string_view verb) const { return {.verb = verb, .path = path_}; }
  // What the system holds in memory, without waiting; -EAGAIN if it cannot tell. `offset` -1: at
  // the file's own position.
  Result ReadInline(std::span<const std::span<std::byte>> buffers, int64_t offset);

  FileDescriptor fd_;
  std::string path_;
  bobbin::internal::Atomic<uint32_t> users_{0};  // Written and read by those who call.
  // Set by whoever is told that this file cannot be asked; read by all.
  bobbin::internal::Atomic<bool> cannot_read_inline_{false};
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_OPEN_FILE_H_
