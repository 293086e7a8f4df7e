// SPDX-License-Identifier: Apache-2.0

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/thread_signal.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

namespace {

enum State : uint64_t { kIdle, kAsked, kAnswering, kAnswered };
constexpr int kStateBits = 8;
constexpr uint64_t Word(pid_t os_thread, State state) noexcept {
  return static_cast<uint64_t>(os_thread) << kStateBits | state;
}

// Never destroyed: a signal may be under way when the process ends.
struct Question {
  Atomic<bool> is_taken{false};           // The lock: held by the asker.
  Atomic<uint64_t> word{Word(0, kIdle)};  // Written by asker and handler; see the header.
  Atomic<uint32_t> answers{0};  // Counted by the handler; the futex that the asker sleeps on.
  StackSample sample;                // The handler's while it is answering, else the asker's.
};
constinit Question question;

void Describe(const void* context, StackSample& sample) noexcept {
  const Thread* const thread = CurrentOrNull();
  sample = StackSample{};
  sample.thread = thread;
  if (thread != nullptr) {
    sample.role = thread->role();
    if (thread->role() == Role::kVirtual) {
      const auto& task = static_cast<const Task&>(*thread);
      sample.id = task.id();
      const std::string_view name = task.name();
      std::copy_n(name.data(), std::min(name.size(), sample.name.size() - 1), sample.name.begin());
    }
  }
  sample.backtrace = Backtrace::OfInterrupted(context);
}

}  // namespace

bool StackSample::Answer(const void* context) noexcept {
  const pid_t self = static_cast<pid_t>(syscall(SYS_gettid));
  uint64_t asked = Word(self, kAsked);
  // Pairs with the store in Take, and orders the writes below after it.
  if (!question.word.compare_exchange_strong(asked, Word(self, kAnswering))) return false;
  Describe(context, question.sample);
  question.word.store(Word(self, kAnswered));
  question.answers.fetch_add(1);
  FutexWakeOne(question.answers);
  return true;
}

std::optional<StackSample> StackSample::Take(pid_t os_thread,
                                             std::chrono::nanoseconds patience) noexcept {
  const int64_t deadline = Deadline::After(patience).nanoseconds();
  // A spin lock with an end to its patience: it is taken by a process that fails, too.
  Backoff backoff;
  while (question.is_taken.exchange(true)) {
    if (MonotonicNow().time_since_epoch().count() >= deadline) return std::nullopt;
    backoff.Pause();
  }

  std::optional<StackSample> sample;
  uint32_t answers = question.answers.load();
  question.word.store(Word(os_thread, kAsked));
  bool is_asked = ThreadSignal::Send(os_thread);
  while (is_asked && question.word.load() != Word(os_thread, kAnswered)) {
    if (FutexWait(question.answers, answers, deadline)) {
      answers = question.answers.load();
      continue;
    }
    // Take the question back, unless it is being answered.
    uint64_t asked = Word(os_thread, kAsked);
    is_asked = !question.word.compare_exchange_strong(asked, Word(0, kIdle));
    if (is_asked) backoff.Pause();
  }
  if (is_asked) sample = question.sample;
  question.word.store(Word(0, kIdle));
  question.is_taken.store(false);
  return sample;
}

}  // namespace bobbin::internal
