// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: as the insides of io call it.

#ifndef BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_
#define BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_

#include <bobbin/io/file_descriptor.h>

namespace bobbin::io::internal {

using bobbin::io::FileDescriptor;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_FILE_DESCRIPTOR_H_
