// SPDX-License-Identifier: Apache-2.0
//
// Crash: processes that are killed in the middle of what they do, and what they have done until
// then.
//
// The test's process forks them while it has no other thread: it may have runtimes before and
// after, but not meanwhile.
//
//   Called from   the main thread.

#ifndef BOBBIN_TESTS_DB_CRASH_H_
#define BOBBIN_TESTS_DB_CRASH_H_

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

// The thread sanitizer does not believe that there are no other threads: some have been.
extern "C" [[gnu::used]] inline const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace bobbin::test {

// Numbers that processes write down, in order; what one has written stays when it dies.
class Journal {
 public:
  Journal() {
    void* const memory =
        ::mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BOBBIN_CHECK(memory != MAP_FAILED, "no memory to share");
    pages_ = static_cast<Pages*>(memory);
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal() { ::munmap(pages_, sizeof(Pages)); }

  // `number` must not be 0. From any process and thread.
  void Write(uint64_t number) {
    const size_t index = pages_->size.fetch_add(1);
    BOBBIN_CHECK(index < kNumbersMax, "the journal is full");
    pages_->numbers[index] = number;
  }
  size_t size() const { return pages_->size; }
  // Without those that somebody died of writing.
  std::vector<uint64_t> Read() const {
    std::vector<uint64_t> numbers;
    for (size_t i = 0; i < size(); ++i) {
      if (pages_->numbers[i] != 0) numbers.push_back(pages_->numbers[i]);
    }
    return numbers;
  }

 private:
  static constexpr size_t kNumbersMax = 1 << 18;
  struct Pages {
    std::atomic<size_t> size;
    std::atomic<uint64_t> numbers[kNumbersMax];
  };
  Pages* pages_ = nullptr;
};

// A process that runs `body` on a virtual thread, in a runtime with an I/O poller.
class Child {
 public:
  explicit Child(const std::function<absl::Status()>& body) : pid_(::fork()) {
    BOBBIN_CHECK(pid_ >= 0, "no process can be made");
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(Run(body, {.carriers = 2, .poller = io::AutoPoller()}));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Kill(); }

  void Kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }
  // Whether it has ended, and how it then has.
  bool HasEnded() {
    if (pid_ != 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }
  // What waitpid says of how it has ended.
  int Wait() {
    if (pid_ != 0) ::waitpid(pid_, &status_, 0);
    pid_ = 0;
    return status_;
  }

 private:
  pid_t pid_ = 0;  // 0: it has ended.
  int status_ = 0;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_CRASH_H_
