// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: ends the process when a test hangs, and says where it hangs.
//
// An OS thread that sleeps as long as a test may take. If it is not stopped by then, it prints what
// the test tells it to and aborts.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_SUPPORT_WATCHDOG_H_
#define BOBBIN_TESTS_SUPPORT_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace bobbin::test {

class Watchdog {
 public:
  // How long a test may take: 20 s, four times that under a sanitizer, and what was asked for with
  // load.h.
  static std::chrono::seconds Limit();

  // `describe` is called on the watchdog's thread, if it comes to that.
  explicit Watchdog(std::function<std::string()> describe = [] { return std::string(); });
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void Watch();

  const std::function<std::string()> describe_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool is_stopped_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_WATCHDOG_H_
