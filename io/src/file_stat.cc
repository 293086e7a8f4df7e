// SPDX-License-Identifier: Apache-2.0

#include "io/src/file_stat.h"

#include "absl/time/time.h"

namespace bobbin::io::internal {

FileKind FromMode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileKind::kFile;
    case S_IFDIR:
      return FileKind::kDirectory;
    case S_IFLNK:
      return FileKind::kLink;
    case S_IFIFO:
      return FileKind::kPipe;
    case S_IFSOCK:
      return FileKind::kSocket;
    case S_IFCHR:
    case S_IFBLK:
      return FileKind::kDevice;
    default:
      return FileKind::kUnknown;
  }
}

FileStat FromStatx(const struct statx& found) {
  const auto time = [](const statx_timestamp& stamp) {
    return absl::FromUnixSeconds(stamp.tv_sec) + absl::Nanoseconds(stamp.tv_nsec);
  };
  return {.kind = FromMode(found.stx_mode),
          .size = found.stx_size,
          .permissions = found.stx_mode & 07777u,
          .user = found.stx_uid,
          .group = found.stx_gid,
          .links = found.stx_nlink,
          .device = (uint64_t{found.stx_dev_major} << 32) | found.stx_dev_minor,
          .inode = found.stx_ino,
          .modified = time(found.stx_mtime),
          .changed = time(found.stx_ctime)};
}

}  // namespace bobbin::io::internal
