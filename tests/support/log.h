// SPDX-License-Identifier: Apache-2.0
//
// Log: what several threads did, in the order in which they did it.
//
//   Called from   any thread. Its lock is held for a few instructions, so carriers may meet there.

#ifndef BOBBIN_TESTS_SUPPORT_LOG_H_
#define BOBBIN_TESTS_SUPPORT_LOG_H_

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace bobbin::test {

template <typename T>
class Log {
 public:
  void Add(T entry) {
    const std::lock_guard hold(mutex_);
    entries_.push_back(std::move(entry));
  }
  // Everything so far; the log is empty afterwards.
  std::vector<T> Take() {
    const std::lock_guard hold(mutex_);
    return std::exchange(entries_, {});
  }
  size_t size() const {
    const std::lock_guard hold(mutex_);
    return entries_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> entries_;  // Guarded by mutex_.
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_LOG_H_
