// SPDX-License-Identifier: Apache-2.0
//
// ThreadSignal: the one signal that bobbin sends to OS threads of its own process. It asks a
// carrier what it is running (stack_sample.h), and gets a platform thread out of a call that its
// caller has given up (interruptible_call.h).
//
// It is one that is ignored where nobody handles it (SIGURG, unless told otherwise), and a handler
// that was there before is called for signals that are not ours. An OS thread gets it only if it
// lets it in: carriers and platform threads do.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          sending: a system call.

#ifndef BOBBIN_CORE_INTERNAL_THREAD_SIGNAL_H_
#define BOBBIN_CORE_INTERNAL_THREAD_SIGNAL_H_

#include <sys/types.h>

namespace bobbin::internal {

struct ThreadSignal {
  // Installs the handler, for the process. Another signal than before moves it.
  static void Install(int signal) noexcept;
  // Whether it is this one.
  static bool Is(int signal) noexcept;
  // Lets the signal in on the calling OS thread.
  static void AdmitHere() noexcept;
  // Sends it. False: none is installed, or the process has no such thread.
  static bool Send(pid_t os_thread) noexcept;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_THREAD_SIGNAL_H_
