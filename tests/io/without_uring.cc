// SPDX-License-Identifier: Apache-2.0
//
// bobbin_without_uring ERROR PROGRAM [ARGUMENT...]: runs a program in which io_uring_setup fails
// with ERROR, EPERM or ENOSYS, as in a container.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "tests/io/refuse_uring.h"

int main(int argc, char** argv) {
  const std::string_view error = argc > 2 ? argv[1] : "";
  if (error != "EPERM" && error != "ENOSYS") {
    std::fprintf(stderr, "usage: bobbin_without_uring EPERM|ENOSYS PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  bobbin::test::RefuseUring(error == "EPERM" ? EPERM : ENOSYS);
  ::execvp(argv[2], argv + 2);
  std::perror(argv[2]);
  return 2;
}
