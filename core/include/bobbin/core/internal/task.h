// SPDX-License-Identifier: Apache-2.0
//
// Task: the control block of one virtual thread, 192 bytes in three cache lines.
//
//   line 1   Thread: what every switch and wake touches, also from another carrier
//   line 2   identity, owner, and what it runs on
//   line 3   before it starts: its body; when it has ended: what it ended with; and its context
//
// Blocks come from a TaskPool and their memory is never returned to the system while the runtime
// lives, so that a late message can look at a block that has ended, find another ticket and do
// nothing.
//
// Messages to its carrier. A carrier's inbox holds tasks, each at most once: `attention` says why.
// Whoever turns it from zero pushes the task; the carrier takes the task out, then swaps the
// reasons for zero and acts on all of them. A block with reasons is in an inbox and must not be
// used anew: its release becomes one more reason.
//
// How its end is told. A task of a group tells its TaskOwner. A task with a handle uses the
// `ending` word, whose `done` is the last thing that the task's carrier writes to the block.
//
//   Called from   as each member says.
//   Suspends      Join.

#ifndef BOBBIN_CORE_INTERNAL_TASK_H_
#define BOBBIN_CORE_INTERNAL_TASK_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/internal/body.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

class LocalTable;
class Task;
class TaskPool;

// What a body ended with.
struct Outcome {
  absl::Status status;
  std::exception_ptr exception;  // Set instead of a status when it threw.

  bool has_failed() const noexcept { return exception != nullptr || !status.ok(); }
  // For messages.
  std::string Describe() const;
};

// Whoever must hear that a task has ended, other than through a handle.
class TaskOwner {
 public:
  // On the task's own thread, when the body has failed and nobody has heard of it yet: it may wait.
  virtual void BodyFailed(const Task&, const Outcome&) noexcept {}
  // On the task's carrier, when the body has returned; the task is freed right after.
  virtual void TaskEnded(Task& task, Outcome outcome) noexcept = 0;

 protected:
  ~TaskOwner() = default;
};

class Task final : public Thread, public IntrusiveLink {
 public:
  enum Attention : uint8_t { kWoken = 1, kCancelRequest = 2, kRelease = 4 };

  Task() noexcept : Thread(Role::kVirtual, nullptr) {}
  ~Task() = default;  // What storage_ holds is ended by hand.

  // Makes the block, which nobody else sees, ready for a new virtual thread, which inherits the
  // caller's context. `name` is copied if it is not empty.
  void Prepare(uint64_t id, std::string_view name) {
    state_.Reset(Phase::kFresh);
    context_ = nullptr;
    dispatcher_.store(nullptr, std::memory_order_relaxed);  // relaxed: not launched yet.
    // relaxed: not launched yet.
    cancel_.store(CancelState::kUnchecked, std::memory_order_relaxed);
    ending_.Reset(0);
    owner_ = nullptr;
    id_ = id;
    Thread& starter = Current();
    if (__builtin_expect(starter.role() == Role::kVirtual, 1)) {
      auto& parent = static_cast<Task&>(starter);
      parent_ = static_cast<uint32_t>(parent.id_);
      context_values_ = ContextNode::Share(parent.context_values_);
    } else {
      parent_ = 0;
      context_values_ = ContextNode::Share(ContextNode::OfCurrent());
    }
    if (__builtin_expect(!name.empty(), 0)) SetName(name);
  }

  // Where to build the body, and how to run it.
  void* body_storage() noexcept { return storage_; }
  void set_body(Body::RunFunction run) noexcept { run_ = run; }
  // The task tells `owner` when it ends, instead of a handle.
  void set_owner(TaskOwner& owner) noexcept {
    owner_ = &owner;
    ending_.Reset(ending_.Load() | kOwned);
  }
  // There is no handle: nobody hears of its end. Called from: whoever prepares it.
  void set_detached() noexcept { ending_.Reset(ending_.Load() | kDetached); }
  // Which size of stack it needs: StackPool::OfClass. Most need that of the runtime, class 0.
  // Called from: whoever prepares it, before anything else.
  void set_size_class(size_t size_class) noexcept {
    ending_.Reset(static_cast<uint32_t>(size_class) << kSizeClassShift);
  }
  bool has_own_size() const noexcept { return (ending_.Load() & kSizeClassBits) != 0; }
  size_t size_class() const noexcept {
    return (ending_.Load() & kSizeClassBits) >> kSizeClassShift;
  }

  bool IsOwnedBy(const TaskOwner& owner) const noexcept {
    return (ending_.Load() & kOwned) != 0 && owner_ == &owner;
  }

  uint64_t id() const noexcept { return id_; }
  // The number of the virtual thread that has started it; 0 when it was none. Of a number that has
  // grown beyond 32 bits, the latest that it can have been.
  uint64_t parent_id() const noexcept {
    if (parent_ == 0) return 0;
    const uint64_t high = id_ >> 32;
    const bool is_of_this_round = parent_ < static_cast<uint32_t>(id_);
    return (is_of_this_round ? high : high - 1) << 32 | parent_;
  }
  std::string_view name() const noexcept {
    return name_ == nullptr ? std::string_view() : std::string_view(name_);
  }
  TaskPool& pool() const noexcept;
  // REQUIRES: the task has started.
  LocalTable*& locals() noexcept { return locals_; }

  // Its innermost context value, or null.
  ContextNode*& context() noexcept { return context_values_; }

  Stack stack() const noexcept { return stack_; }

  // Returns the block to where it came from. Called from: whoever holds it, on any thread.
  void Free() noexcept;

  // Whether it is launched or running. Called from: any thread; the answer may be old at once.
  bool IsLive() const noexcept;

  // --- The handle's side: one thread at a time.

  // Waits for the end. With `phase` kWaiting a deadline or a cancel may end the wait; the task is
  // then as before.
  Wake AwaitEnd(Phase phase) noexcept;
  // What the body ended with; frees the block. REQUIRES: IsDone().
  Outcome TakeEnd() noexcept;
  // Lets the task free itself when it ends.
  void Detach() noexcept;
  bool IsDone() const noexcept { return (ending_.Load() & kDone) != 0; }

 private:
  friend class Dispatcher;
  friend class Inbox;
  friend class Thread;
  friend class Intake;
  friend class TaskPool;
  friend class TaskCache;
  friend struct DebuggerView;

  // Bits of `ending_`, beside its lock.
  static constexpr uint32_t kDone = 2;
  static constexpr uint32_t kDetached = 4;
  static constexpr uint32_t kOwned = 8;
  static constexpr uint32_t kSizeClassShift = 4;
  static constexpr uint32_t kSizeClassBits = uint32_t{15} << kSizeClassShift;  // Never change.

  void SetName(std::string_view name);
  // Runs the body on the calling stack and keeps what it ends with.
  void RunBody() noexcept;
  void TellFailure(const absl::Status& status, const std::exception_ptr& exception) noexcept;
  // Tells owner or handle; true if the block is now the caller's to free.
  [[nodiscard]] bool TellEnd() noexcept;
  [[nodiscard]] bool TellHandle() noexcept;
  // Drops what it ended with, which must not be an exception.
  void DropEnd() noexcept;
  // Says whose exception it is that nobody will hear of, and terminates with it.
  [[noreturn]] void EndProcess(const Outcome& end) const noexcept;
  Outcome& outcome() noexcept { return *std::launder(reinterpret_cast<Outcome*>(storage_)); }
  Outcome TakeOutcome() noexcept {
    Outcome taken = std::move(outcome());
    outcome().~Outcome();
    return taken;
  }

  Stack stack_;                      // What it runs on, once it has started.
  WordLock<uint32_t, 1> ending_{0};  // See above.
  uint32_t parent_ = 0;              // See parent_id.
  uint64_t id_ = 0;
  char* name_ = nullptr;
  union {
    TaskOwner* owner_ = nullptr;
    Waiter* joiner_;  // Guarded by the lock in ending_; who waits in Join.
  };
  union {
    Body::RunFunction run_ = nullptr;  // Until it starts.
    LocalTable* locals_;               // From then on.
  };
  // Until it starts, the body; when it has ended, its Outcome.
  alignas(Body::kInlineAlignment) std::byte storage_[Body::kInlineBytes];
  ContextNode* context_values_ = nullptr;  // Owned until the body has ended.
};

#if !defined(__SANITIZE_THREAD__)
static_assert(sizeof(Task) == 3 * kCacheLineBytes);
#endif
static_assert(sizeof(Outcome) <= Body::kInlineBytes);

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_TASK_H_
