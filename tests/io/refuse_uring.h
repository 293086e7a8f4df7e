// SPDX-License-Identifier: Apache-2.0
//
// RefuseUring: makes this process, and those it starts, be refused what io_uring needs, as a
// container's seccomp profile does it.
//
//   Called from   any thread; it counts for the calling one and for those it starts from then on.

#ifndef BOBBIN_TESTS_IO_REFUSE_URING_H_
#define BOBBIN_TESTS_IO_REFUSE_URING_H_

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace bobbin::test {

// From now on system call number `call` fails with `error` if argument `which` of it is larger than
// `allowed_max`.
inline void RefuseAbove(long call, int which, uint32_t allowed_max, int error) {
  const auto statement = [](int code, uint32_t value) {
    return sock_filter{static_cast<uint16_t>(code), 0, 0, value};
  };
  const auto jump = [](int code, uint32_t value, int if_true, int if_false) {
    return sock_filter{static_cast<uint16_t>(code), static_cast<uint8_t>(if_true),
                       static_cast<uint8_t>(if_false), value};
  };
  const auto argument = static_cast<uint32_t>(offsetof(seccomp_data, args) +
                                              sizeof(uint64_t) * static_cast<size_t>(which));
  sock_filter filter[] = {
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 3),
      statement(BPF_LD | BPF_W | BPF_ABS, argument),
      jump(BPF_JMP | BPF_JGT | BPF_K, allowed_max, 0, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::fprintf(stderr, "no seccomp filter\n");
    std::exit(2);
  }
}

// io_uring_setup fails if it is asked for more than `entries_max` entries.
inline void RefuseUring(int error, uint32_t entries_max = 0) {
  RefuseAbove(SYS_io_uring_setup, 0, entries_max, error);
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_REFUSE_URING_H_
