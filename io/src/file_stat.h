// SPDX-License-Identifier: Apache-2.0
//
// File stat: FileStat, from what the kernel tells.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_FILE_STAT_H_
#define BOBBIN_IO_SRC_FILE_STAT_H_

#include <sys/stat.h>

#include <cstdint>

#include <bobbin/io/file.h>

namespace bobbin::io::internal {

FileStat FromStatx(const struct statx& found);
FileKind FromMode(uint32_t mode);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_FILE_STAT_H_
