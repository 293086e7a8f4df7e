// SPDX-License-Identifier: Apache-2.0
//
// DumpRecords: what a dump has found, before it is written down.
//
//   Called from   whoever makes the dump.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_DUMP_RECORDS_H_
#define BOBBIN_SCHED_SRC_DUMP_RECORDS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

// Stacks, each of them once: a hundred thousand threads wait at a handful of places.
class TraceTable {
 public:
  using Frames = std::vector<const void*>;
  // What a thread has whose stack nobody has seen.
  static constexpr uint32_t kNone = 0;

  // The number of a stack; kNone when it is empty.
  uint32_t Add(const Backtrace& backtrace) { return Add(backtrace.frames(), backtrace.is_cut()); }
  uint32_t Add(std::span<const void* const> frames, bool is_cut) {
    if (frames.empty()) return kNone;
    scratch_.assign(frames.begin(), frames.end());
    // A mark that no address is.
    if (is_cut) scratch_.push_back(nullptr);
    const auto [place, is_new] =
        numbers_.try_emplace(scratch_, static_cast<uint32_t>(traces_.size() + 1));
    if (is_new) traces_.push_back(scratch_);
    return place->second;
  }

  size_t size() const { return traces_.size(); }
  std::span<const void* const> frames(uint32_t number) const {
    if (number == kNone) return {};
    const Frames& frames = traces_[number - 1];
    return {frames.data(), frames.size() - (is_cut(number) ? 1 : 0)};
  }
  bool is_cut(uint32_t number) const {
    return number != kNone && traces_[number - 1].back() == nullptr;
  }

 private:
  std::vector<Frames> traces_;
  absl::flat_hash_map<Frames, uint32_t> numbers_;
  Frames scratch_;
};

enum class ThreadStatus : uint8_t { kNotStarted, kRunning, kReady, kWaiting };

struct ThreadRecord {
  const Thread* thread = nullptr;  // To tell it from others; not to be looked at.
  Role role = Role::kVirtual;
  ThreadStatus status = ThreadStatus::kReady;
  uint64_t id = 0;      // A virtual thread's.
  uint64_t parent = 0;  // The same; 0: no virtual thread has started it.
  std::string name;
  int carrier = -1;
  pid_t os_thread = 0;  // Of platform and foreign threads.
  bool is_cancelled = false;
  bool is_shielded = false;
  // While it waits.
  const WaitKind* kind = nullptr;
  const void* object = nullptr;
  const Thread* holder = nullptr;
  const ThreadRecord* held_by = nullptr;  // The holder's record, if it has one.
  int64_t since = 0;
  std::optional<int64_t> deadline;
  // A virtual thread's stack, once it has begun.
  Stack stack;
  size_t size_class = 0;  // See StackPool.
  size_t stack_bytes = 0;
  size_t stack_used = 0;     // Down to where it is parked.
  size_t stack_touched = 0;  // Of memory that there is: the most that it has used, in pages.
  uint32_t trace = TraceTable::kNone;
};

enum class CarrierStatus : uint8_t { kAwake, kAsleep, kStuck, kEnded };

struct CarrierRecord {
  int index = 0;
  pid_t os_thread = 0;
  CarrierStatus status = CarrierStatus::kAwake;
  uint64_t running = 0;                // The virtual thread that it ran when it was asked.
  uint32_t trace = TraceTable::kNone;  // Its own, if it was not running one.
};

struct RuntimeRecord {
  std::string poller;
  std::string poller_reason;  // Why not the one that was preferred.
  std::vector<CarrierRecord> carriers;
  std::vector<ThreadRecord> threads;
};

struct DumpRecords {
  int64_t begun = 0;
  int64_t ended = 0;
  std::vector<RuntimeRecord> runtimes;
  std::vector<ThreadRecord> os_threads;
  // Threads of which each waits for the next one, and the last for the first.
  std::vector<std::vector<const ThreadRecord*>> cycles;
  TraceTable traces;
};

// How they are written down.
std::string WriteText(const DumpRecords& records, size_t listed_max);
std::string WriteJson(const DumpRecords& records);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DUMP_RECORDS_H_
