// SPDX-License-Identifier: Apache-2.0
//
// OsThread: a foreign thread of a simulation, in the place of std::thread.
//
//   Called from   the threads of a simulation.
//   Suspends      Join and the destructor block the simulated OS thread: not from virtual threads.
//   Memory        What came before the constructor happens before the body, and that before Join
//                 returns.
//
// Example:
//   bobbin::testing::OsThread other([&] { event.Set(); });

#ifndef BOBBIN_TESTING_OS_THREAD_H_
#define BOBBIN_TESTING_OS_THREAD_H_

#include "absl/functional/any_invocable.h"

namespace bobbin::testing {

class [[nodiscard]] OsThread {
 public:
  explicit OsThread(absl::AnyInvocable<void() &&> body);
  OsThread(OsThread&& other) noexcept;
  OsThread& operator=(OsThread&& other) noexcept;
  // Joins.
  ~OsThread();

  void Join();
  bool is_joinable() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace bobbin::testing

#endif  // BOBBIN_TESTING_OS_THREAD_H_
