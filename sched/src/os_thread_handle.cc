// SPDX-License-Identifier: Apache-2.0

#include "sched/src/os_thread_handle.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

#include "sched/src/fork_guard.h"

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

// What the new thread is given.
struct Start {
  std::string name;
  absl::AnyInvocable<void() &&> body;
};

void* Enter(void* argument) noexcept {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name.c_str());
  std::move(start->body)();
  return nullptr;
}

}  // namespace

absl::StatusOr<OsThreadHandle> OsThreadHandle::TryStart(std::string_view name,
                                                        absl::AnyInvocable<void() &&> body) {
  ForkGuard::CheckNotForked();
  ForkGuard::ThreadStarts();
  const SignalsBlocked blocked;
  auto start = std::make_unique<Start>(
      Start{std::string(name.substr(0, kNameBytesMax)), std::move(body)});
  pthread_t thread;
  if (const int error = pthread_create(&thread, nullptr, &Enter, start.get()); error != 0) {
    ForkGuard::ThreadEnded();
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      MessageOf(ErrnoStatus(error, "start thread " + std::string(name))));
  }
  static_cast<void>(start.release());  // The thread's now.
  OsThreadHandle handle;
  handle.thread_ = thread;
  return handle;
}

OsThreadHandle::OsThreadHandle(std::string_view name, absl::AnyInvocable<void() &&> body) {
  absl::StatusOr<OsThreadHandle> started = TryStart(name, std::move(body));
  BOBBIN_CHECK(started.ok(), MessageOf(started.status()));
  *this = *std::move(started);
}

void OsThreadHandle::Join() {
  ForkGuard::CheckNotForked();
  pthread_join(*std::exchange(thread_, std::nullopt), nullptr);
  ForkGuard::ThreadEnded();
}

void OsThreadHandle::Detach() { pthread_detach(*std::exchange(thread_, std::nullopt)); }

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
    pthread_setaffinity_np(*thread_, sizeof(only), &only);
    return;
  }
}

}  // namespace bobbin::internal
