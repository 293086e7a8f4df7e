// SPDX-License-Identifier: Apache-2.0
//
// OsThreads: a handful of OS threads that are joined at the end of a scope. Crew: the same for
// threads of all kinds, to let them meet at one object.
//
//   Called from   foreign threads: joining blocks.

#ifndef BOBBIN_TESTS_SUPPORT_OS_THREADS_H_
#define BOBBIN_TESTS_SUPPORT_OS_THREADS_H_

#if !defined(BOBBIN_SIMULATED)
#include <thread>
#endif
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/vthread.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>

#if defined(BOBBIN_SIMULATED)
#include "sched/src/os_thread_handle.h"
#endif
#include "tests/support/status_matchers.h"

namespace bobbin::test {

class OsThreads {
 public:
  OsThreads() = default;
  OsThreads(const OsThreads&) = delete;
  OsThreads& operator=(const OsThreads&) = delete;
  ~OsThreads() { Join(); }

  template <typename F>
  void Start(F&& body) {
#if defined(BOBBIN_SIMULATED)
    threads_.emplace_back("foreign", std::forward<F>(body));
#else
    threads_.emplace_back(std::forward<F>(body));
#endif
  }
  void Join() {
#if defined(BOBBIN_SIMULATED)
    for (internal::OsThreadHandle& thread : threads_) thread.Join();
#else
    for (std::thread& thread : threads_) thread.join();
#endif
    threads_.clear();
  }

 private:
#if defined(BOBBIN_SIMULATED)
  std::vector<internal::OsThreadHandle> threads_;
#else
  std::vector<std::thread> threads_;
#endif
};

// A platform thread is one of the runtime's default pool, which has only a few.
enum class Kind { kVirtual, kPlatform, kForeign };

class Crew {
 public:
  explicit Crew(Runtime& runtime) : runtime_(runtime) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { Join(); }

  template <typename F>
  void Start(Kind kind, F&& body) {
    if (kind == Kind::kForeign) {
      os_threads_.Start(std::forward<F>(body));
    } else if (kind == Kind::kPlatform) {
      vthreads_.push_back(runtime_.Spawn(
          [body = std::decay_t<F>(std::forward<F>(body))]() mutable { return RunBlocking(body); }));
    } else {
      vthreads_.push_back(runtime_.Spawn({.placement = Placement::kSpread}, std::forward<F>(body)));
    }
  }
  // Waits for the end of all; nobody is cancelled.
  void Join() {
    for (VirtualThread& vthread : vthreads_) EXPECT_OK(vthread.Join());
    vthreads_.clear();
    os_threads_.Join();
  }

 private:
  Runtime& runtime_;
  std::vector<VirtualThread> vthreads_;
  OsThreads os_threads_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_OS_THREADS_H_
