// SPDX-License-Identifier: Apache-2.0
//
// Uring constants: what the kernel has and liburing 2.3 does not name yet, each with the first
// kernel that knows it. The values are the kernel's interface and never change.

#ifndef BOBBIN_IO_SRC_URING_CONSTANTS_H_
#define BOBBIN_IO_SRC_URING_CONSTANTS_H_

#include <cstdint>

namespace bobbin::io::internal {

// Flags of io_uring_enter.
inline constexpr uint32_t kEnterAbsoluteTimer = 1u << 5;  // 6.12: the timeout is a point in time.
// 6.15: a sleeping thread is idle, not in iowait.
inline constexpr uint32_t kEnterNoIowait = 1u << 7;

// Flags of a send without a copy, and of what its notification brings.
inline constexpr uint32_t kSendReportCopies = 1u << 3;  // 6.2: say whether it was copied.
inline constexpr uint32_t kNotifiedCopied = 1u << 31;   // 6.2: it was.

// What io_uring_setup reports of the kernel.
inline constexpr uint32_t kFeatureNoIowait = 1u << 17;  // 6.15: kEnterNoIowait is understood.

// Codes of io_uring_register.
inline constexpr uint32_t kRegisterSendMessage = 31;  // 6.13: a message to a ring, from any thread.

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_URING_CONSTANTS_H_
