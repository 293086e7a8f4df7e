// SPDX-License-Identifier: Apache-2.0
//
// Replacement: a file in the making, which gets its name when it is whole. Until then it has
// another name, in the same directory; whoever gives up removes it.
//
//   Called from   platform and foreign threads.
//   Suspends      blocks the OS thread.

#ifndef BOBBIN_IO_SRC_REPLACEMENT_H_
#define BOBBIN_IO_SRC_REPLACEMENT_H_

#include <cstdint>
#include <string>

#include <bobbin/io/file_system.h>

#include "io/src/file_call.h"
#include "io/src/file_descriptor.h"
#include "io/src/result.h"

namespace bobbin::io::internal {

class Replacement {
 public:
  explicit Replacement(std::string name) : name_(std::move(name)) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement();

  // Creates it, empty. Negative results as everywhere, here and below.
  Result Begin(InterruptibleCall& call, uint32_t permissions);
  int fd() const { return fd_.get(); }
  // Gives it its name.
  Result Commit(Existing existing);

 private:
  const std::string name_;
  std::string name_until_then_;  // Empty while there is no such file.
  FileDescriptor fd_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_REPLACEMENT_H_
