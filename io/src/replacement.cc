// SPDX-License-Identifier: Apache-2.0

#include "io/src/replacement.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include <bobbin/core/check.h>

#include "io/src/path.h"

namespace bobbin::io::internal {

Replacement::~Replacement() {
  if (!name_until_then_.empty()) ::unlink(name_until_then_.c_str());
}

Result Replacement::Begin(InterruptibleCall& call, uint32_t permissions) {
  while (true) {
    uint64_t random = 0;
    BOBBIN_CHECK(::getrandom(&random, sizeof(random), 0) == sizeof(random), "no random bytes");
    std::string name = fmt::format("{}/.bobbin-{:016x}", DirectoryOf(name_), random);
    const Result fd = call.Run(SYS_openat, AT_FDCWD, name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    if (fd == -EEXIST) continue;
    if (fd < 0) return fd;
    fd_ = FileDescriptor(static_cast<int>(fd));
    name_until_then_ = std::move(name);
    return 0;
  }
}

Result Replacement::Commit(Existing existing) {
  if (existing == Existing::kReplaced) {
    if (::rename(name_until_then_.c_str(), name_.c_str()) != 0) return -errno;
    name_until_then_.clear();
    return 0;
  }
  // Every file system that knows two names for a file refuses one that is taken; not all can do
  // that while they rename. The first name goes with this object.
  return ::link(name_until_then_.c_str(), name_.c_str()) == 0 ? 0 : -errno;
}

}  // namespace bobbin::io::internal
