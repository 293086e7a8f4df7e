// SPDX-License-Identifier: Apache-2.0
//
// Role: what kind of thread is running this line, and what it may therefore do.
//
//   role       stack                  may suspend         may block the OS thread
//   kVirtual   a virtual thread's     yes                 no
//   kCarrier   the carrier's own      no                  only in Poller::Poll
//   kPlatform  a pool thread's        waits block         yes
//   kForeign   any other thread's     waits block         yes
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_CORE_ROLE_H_
#define BOBBIN_CORE_ROLE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace bobbin {

enum class Role : uint8_t { kVirtual, kCarrier, kPlatform, kForeign };

// "virtual", "carrier", "platform" or "foreign".
std::string_view RoleName(Role role);

// The role of the calling thread.
Role CurrentRole();

// The calling thread as a person would name it: `virtual thread "acceptor" (id 7)`, `platform
// thread "sqlite-1"`. For messages; allocates.
std::string DescribeCurrentThread();

// Aborts, naming `operation` and the thread, when the caller is a virtual thread or a carrier: such
// a call would stop everything else on that carrier. Wrappers of blocking calls begin with it.
void CheckMayBlock(std::string_view operation);

}  // namespace bobbin

#endif  // BOBBIN_CORE_ROLE_H_
