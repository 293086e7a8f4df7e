// SPDX-License-Identifier: Apache-2.0

#include "sched/src/os_thread_handle.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

namespace {

// What the kernel keeps of a thread's name, without the end.
constexpr size_t kNameBytesMax = 15;

// Blocks signals for a scope, so that a thread started meanwhile inherits the mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

absl::StatusOr<OsThreadHandle> OsThreadHandle::TryStart(std::string_view name,
                                                        absl::AnyInvocable<void() &&> body) {
  const SignalsBlocked blocked;
  OsThreadHandle handle;
  try {
    handle.thread_ = std::thread(
        [name = std::string(name.substr(0, kNameBytesMax)), body = std::move(body)]() mutable {
          pthread_setname_np(pthread_self(), name.c_str());
          std::move(body)();
        });
  } catch (const std::system_error& error) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      "start thread " + std::string(name) + ": " + error.code().message());
  }
  return handle;
}

OsThreadHandle::OsThreadHandle(std::string_view name, absl::AnyInvocable<void() &&> body) {
  absl::StatusOr<OsThreadHandle> started = TryStart(name, std::move(body));
  BOBBIN_CHECK(started.ok(), MessageOf(started.status()));
  *this = *std::move(started);
}

void OsThreadHandle::PinToUsableCpu(int index) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  const int count = CPU_COUNT(&usable);
  int left = index % count;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || left-- != 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    pthread_setaffinity_np(thread_.native_handle(), sizeof(only), &only);
    return;
  }
}

}  // namespace bobbin::internal
