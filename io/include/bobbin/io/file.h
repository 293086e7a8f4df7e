// SPDX-License-Identifier: Apache-2.0
//
// File: an open file.
//
// Files have no waits that a ring could take over without surprises, so what may block is done by
// platform threads of the runtime, and a carrier never waits for a disk. A small read of what the
// system holds in memory is done on the spot. Sync has platform threads of its own ("sync"): it may
// take long, and the rest goes on meanwhile.
//
//   Called from   Virtual threads of any runtime, platform and foreign threads; the last two block.
//                 Any number of threads at a time. Close, moving and destroying: nobody else may be
//                 in a call, or about to begin one; a file closed under its user aborts.
//   Suspends      Everything but the accessors; the destructor of an open file, too.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. What waits for a platform thread is
//                 then not done. What the kernel has begun is interrupted where the kernel can do
//                 that - a pipe, a terminal, the opening of a named pipe - and else waited for, a
//                 MiB at a time, since it uses the buffer: of a write that was ended, an unknown
//                 part is written. Close and the destructor ignore it. On platform and foreign
//                 threads nothing ends a call that has begun.
//   Errors        errno's canonical code, and what was tried: "open /var/x: no such file or
//                 directory". INVALID_ARGUMENT: the path has a zero byte. UNAVAILABLE: the runtime
//                 is shut down.
//   Order         none between threads. Each append is one piece.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns,
//                 not longer.
//   Cost          A read from memory up to kInlineBytesMax: one system call. Everything else: a
//                 round trip to a platform thread besides the call.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto file, bobbin::io::File::Open("/etc/hostname"));
//   BOBBIN_ASSIGN_OR_RETURN(size_t have, file.ReadAt(buffer, 0));

#ifndef BOBBIN_IO_FILE_H_
#define BOBBIN_IO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::io {

namespace internal {
class OpenFile;
}  // namespace internal

enum class FileAccess : uint8_t {
  kRead,
  kWrite,
  kReadWrite,
  kAppend,  // Write, always at the end.
};

enum class FileCreation : uint8_t {
  kNever,      // The file must be there.
  kIfMissing,  // It is created unless it is there.
  kMustBeNew,  // It is created, and must not be there.
  kEmptied,    // It is created, or emptied if it is there.
};

struct OpenOptions {
  FileAccess access = FileAccess::kRead;
  FileCreation creation = FileCreation::kNever;
  // Of a new file, less the process's umask.
  uint32_t permissions = 0644;
};

enum class FileKind : uint8_t { kFile, kDirectory, kLink, kPipe, kSocket, kDevice, kUnknown };

struct FileStat {
  FileKind kind = FileKind::kUnknown;
  uint64_t size = 0;
  uint32_t permissions = 0;  // The lowest twelve bits of the mode.
  uint32_t user = 0;
  uint32_t group = 0;
  uint64_t links = 0;
  // Which file of the machine it is.
  uint64_t device = 0;
  uint64_t inode = 0;
  absl::Time modified;  // Its contents...
  absl::Time changed;   // ...or what else is known of it.
};

// What is on the disk when Sync returns.
enum class SyncScope : uint8_t {
  kData,        // The contents, and what is needed to read them.
  kEverything,  // Times and permissions as well.
};

class File {
 public:
  // The largest read that is tried on the spot. Copying that much takes about as long as the way to
  // a platform thread and back.
  static constexpr size_t kInlineBytesMax = 64 << 10;

  // Holds nothing; to be assigned to.
  File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  static absl::StatusOr<File> Open(std::string_view path, const OpenOptions& options = {});
  // A new file without a name, to read and write, in `directory`; it goes when it is closed.
  static absl::StatusOr<File> OpenTemporary(std::string_view directory = "/tmp");
  // Takes over a descriptor; `path` is for errors. REQUIRES: nobody else uses the descriptor.
  static File Adopt(int fd, std::string_view path);

  // Fills the buffer, or what there is until the file ends, and returns how much that is.
  absl::StatusOr<size_t> ReadAt(std::span<std::byte> buffer, uint64_t offset);
  // The same for several buffers, one after another.
  absl::StatusOr<size_t> ReadAt(std::span<const std::span<std::byte>> buffers, uint64_t offset);
  // Writes all of it. On a file opened by kAppend, Linux ignores the offset.
  absl::Status WriteAt(std::span<const std::byte> bytes, uint64_t offset);
  absl::Status WriteAt(std::span<const std::span<const std::byte>> parts, uint64_t offset);

  // At the file's own position, which moves on; for pipes, devices and files read once. Read
  // returns what is there, at least a byte; 0 at the end. Write writes all of it.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  absl::Status Write(std::span<const std::byte> bytes);

  // Returns when the disk has it. An error may be about what was written long ago.
  absl::Status Sync(SyncScope scope = SyncScope::kData);
  absl::StatusOr<FileStat> Stat();
  // Cuts it off, or extends it by zeros.
  absl::Status Resize(uint64_t size);
  // Tells what the system says about the last writes; the file is closed in any case.
  absl::Status Close();

  const std::string& path() const;
  // Whether it holds an open file.
  explicit operator bool() const { return file_ != nullptr; }

 private:
  explicit File(std::unique_ptr<internal::OpenFile> file);
  internal::OpenFile& file() const;

  std::unique_ptr<internal::OpenFile> file_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_FILE_H_
