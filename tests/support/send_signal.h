// SPDX-License-Identifier: Apache-2.0
//
// SendSignal: sends a signal to the process.
//
// Under the thread sanitizer who sleeps in a futex takes no signal until it is awake again: there a
// thread that is awake sends it to itself.
//
//   Called from   any thread. Carriers block signals; it makes a thread that does not.
//   Suspends      never; blocks the OS thread until the signal is sent.

#ifndef BOBBIN_TESTS_SUPPORT_SEND_SIGNAL_H_
#define BOBBIN_TESTS_SUPPORT_SEND_SIGNAL_H_

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

#include "tests/support/sanitizers.h"

namespace bobbin::test {

inline void SendSignal(int signal) {
  std::thread([signal] {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    EXPECT_EQ(kUnderThreadSanitizer ? raise(signal) : kill(getpid(), signal), 0);
  }).join();
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_SEND_SIGNAL_H_
