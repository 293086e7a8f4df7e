// SPDX-License-Identifier: Apache-2.0
//
// Simulator: a machine of simulated OS threads, on one real one.
//
// Carriers, platform threads, foreign threads and the monitor each are a context here. Every access
// of an Atomic, every wait for the kernel, every look at the clock and every pause of a spin is a
// step: before it, a Chooser says which thread goes on. The same choices give the same run.
//
// Memory. Each word remembers its last few stores, and each thread a vector clock of what it knows
// (what happened before, in the words of C++). A load may answer with any store that the thread
// does not know to be overwritten; acquire takes over what the release knew; a sequentially
// consistent load sees the last sequentially consistent store, at least. So a missing order shows
// itself, also where this processor would forgive it. Stores are never seen before they are made.
//
// Time. The clock advances a little with every step, and jumps to the next deadline when nobody can
// run, or when the chooser wants somebody to have been slow. When nobody can run and nobody waits
// for the time, that is a deadlock.
//
// Failures. The first one ends the run: the threads are left where they are, and what they hold is
// not given back.
//
// Rejected. Store buffers in place of histories: they show a missing fence between a store and a
// load, but no missing acquire or release.
//
//   Called from   the real OS thread that runs the simulation; only one can run at a time.
//   Suspends      each step may switch to another simulated OS thread.
//   Cost          some 50 ns a step.

#ifndef BOBBIN_CORE_INTERNAL_SIMULATOR_H_
#define BOBBIN_CORE_INTERNAL_SIMULATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"

#include <bobbin/core/internal/fault.h>

namespace bobbin::internal {

// A line of the code.
struct Place {
  // The caller's line, where it is a default argument.
  static constexpr Place Here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  const char* file = nullptr;
  int line = 0;
};

enum class StepKind : uint8_t {
  kLoad,
  kStore,
  kModify,
  kFence,
  kFutexWait,
  kFutexWake,
  kPause,
  kClock,
  kStart,
  kJoin,
  kEnd,
};

// Why another thread may be next: the running one could go on; it has given its turn away; it waits
// or has ended.
enum class Switch : uint8_t { kPreempts, kYields, kWaits };

// Chooses how a run goes on.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Which of `threads`, at least two, runs next, as an index. With kPreempts the first one is the
  // running one; else it is not among them, and the first one is who comes after it in a circle.
  virtual size_t ChooseThread(std::span<const int> threads, Switch kind) noexcept = 0;
  // A running thread spins or gives its slice away: others should go first.
  virtual void HasYielded(int thread) noexcept = 0;
  // Which of `count` stores a load answers with; 0 is the newest.
  virtual size_t ChooseRead(size_t count) noexcept = 0;
  // Whether the clock jumps to a deadline that is near.
  virtual bool ChooseJump() noexcept = 0;
  virtual bool ChooseFault(std::string_view point) noexcept = 0;
};

class SimulatedThread;

class Simulator {
 public:
  struct Options {
    uint64_t steps_max = 1'000'000;
    // Of the clock, when the run begins.
    int64_t starts_at = 0;
  };
  Simulator(Chooser& chooser, const Options& options);
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;
  ~Simulator();

  // --- Around a run.

  // Runs `body` on the first thread, named "main", and returns when every thread has ended, or
  // when something has failed.
  void Run(absl::AnyInvocable<void()> body);
  bool has_failed() const noexcept { return !failure_.empty(); }
  // What has failed, who was where, and the last steps.
  const std::string& failure() const noexcept { return failure_; }
  uint64_t steps() const noexcept { return steps_; }

  // --- Inside one.

  // The simulation that the caller is a part of, or null.
  static Simulator* Active() noexcept { return active_; }
  // Ends the run.
  [[noreturn]] void Fail(std::string_view what);
  // What has happened, who is where, and the last steps: what a report begins with.
  std::string Describe(std::string_view what) const;
  // What a failure adds to its report; it may look at atomics, but whoever waits for a lock is cut
  // short.
  void set_describe(absl::AnyInvocable<std::string()> describe) { describe_ = std::move(describe); }

  int StartThread(std::string_view name, absl::AnyInvocable<void() &&> body);
  void JoinThread(int id);
  // Nobody will join it.
  void DetachThread(int id) noexcept;
  // Calls `function(argument)` when the running thread ends; the last one first.
  void AtThreadExit(void (*function)(void*), void* argument);
  std::span<char> RunningStack() const noexcept;
  // Those that have not ended.
  size_t CountThreads() const noexcept;

  int64_t now() const noexcept { return now_; }
  // A look at the clock.
  int64_t Now() noexcept;
  // Lets time pass for everybody, as if nothing had run meanwhile.
  void Advance(int64_t nanoseconds) noexcept { now_ += nanoseconds; }

  // Whether the thread was woken; false: the deadline has passed. REQUIRES: the caller has looked
  // at the word in this step.
  bool WaitOn(const void* word, int64_t deadline) noexcept;
  void WakeOne(const void* word) noexcept;
  // A spin, or a slice that is given away.
  static void Pause(Place place = Place::Here()) noexcept;

  // --- What an Atomic calls. Without a simulation they do nothing, and a load is what it is.

  static void Step(StepKind kind, const void* at, Place place) noexcept {
    if (active_ != nullptr) active_->TakeStep(kind, at, place);
  }
  static uint64_t Load(const void* at, uint64_t newest, std::memory_order order) noexcept {
    return active_ == nullptr ? newest : active_->LoadFrom(at, newest, order, nullptr);
  }
  // A value other than `expected`, which is not the newest one.
  static uint64_t LoadOther(const void* at, uint64_t newest, uint64_t expected,
                            std::memory_order order) noexcept {
    return active_ == nullptr ? newest : active_->LoadFrom(at, newest, order, &expected);
  }
  static void Store(const void* at, uint64_t newest, uint64_t value,
                    std::memory_order order) noexcept {
    if (active_ != nullptr) active_->StoreTo(at, newest, value, order, false);
  }
  static void Modify(const void* at, uint64_t newest, uint64_t value,
                     std::memory_order order) noexcept {
    if (active_ != nullptr) active_->StoreTo(at, newest, value, order, true);
  }
  static void Fence(std::memory_order order) noexcept {
    if (active_ != nullptr) active_->FenceHere(order);
  }
  static void Created(const void* at) noexcept {
    if (active_ != nullptr) active_->Forget(at);
  }
  static void Destroyed(const void* at) noexcept {
    if (active_ != nullptr) active_->Bury(at);
  }
  static bool Fails(FaultPoint point) noexcept {
    return active_ != nullptr && active_->ChooseFault(point);
  }
  static std::memory_order OrderOfFailure(std::memory_order success) noexcept;

  // --- Plain data that is watched: whether its accesses are ordered.

  static void PlainCreated(const void* at, Place place) noexcept {
    if (active_ != nullptr) active_->BeginPlain(at, place);
  }
  static void PlainRead(const void* at, Place place) noexcept {
    if (active_ != nullptr) active_->CheckPlain(at, false, place);
  }
  static void PlainWrite(const void* at, Place place) noexcept {
    if (active_ != nullptr) active_->CheckPlain(at, true, place);
  }

 private:
  friend class SimulatedThread;
  struct State;

  class Inside;

  // Whether atomics are plain variables now.
  bool is_direct() const noexcept { return is_reporting_ || is_inside_; }
  void TakeStep(StepKind kind, const void* at, Place place) noexcept;
  uint64_t LoadFrom(const void* at, uint64_t newest, std::memory_order order,
                    const uint64_t* unlike) noexcept;
  void StoreTo(const void* at, uint64_t newest, uint64_t value, std::memory_order order,
               bool is_modify) noexcept;
  void FenceHere(std::memory_order order) noexcept;
  void Forget(const void* at) noexcept;
  void Bury(const void* at) noexcept;
  void BeginPlain(const void* at, Place place) noexcept;
  void CheckPlain(const void* at, bool is_write, Place place) noexcept;
  bool ChooseFault(FaultPoint point) noexcept;

  SimulatedThread& MakeThread(std::string_view name, absl::AnyInvocable<void() &&> body);
  void Yielded(const SimulatedThread& thread) noexcept;
  void Expire() noexcept;
  // Runs whoever is chosen; returns when the caller is.
  void Reschedule(Switch kind) noexcept;
  void BlockRunning(const void* word, int64_t deadline) noexcept;
  void SwitchTo(SimulatedThread& next) noexcept;
  void ReturnToCaller() noexcept;
  void EndRunning() noexcept;

  static inline Simulator* active_ = nullptr;

  Chooser& chooser_;
  const Options options_;
  const std::unique_ptr<State> state_;
  absl::AnyInvocable<std::string()> describe_;
  std::string failure_;
  bool is_reporting_ = false;
  // In a function of its own that allocates: an operator new of the test's may count with an
  // Atomic.
  bool is_inside_ = false;
  uint64_t steps_ = 0;
  int64_t now_;
  int64_t next_deadline_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_SIMULATOR_H_
