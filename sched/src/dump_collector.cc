// SPDX-License-Identifier: Apache-2.0

#include "sched/src/dump_collector.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/debugger.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/task_cache.h>
#include <bobbin/core/internal/timer_node.h>

#include "sched/src/carrier.h"
#include "sched/src/limits.h"
#include "sched/src/memory_reader.h"
#include "sched/src/now.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

namespace {

// How long a carrier that does not come round may take to say what it runs: it is the one that a
// reader wants to know about.
constexpr std::chrono::milliseconds kStuckPatience(500);
constexpr size_t kNameReadMax = 256;
constexpr size_t kBlocksPerCopy = 512;

// What a thread waits for that may go on meanwhile: nothing, if that does not make sense.
void ReadReason(const WaitReason* address, ThreadRecord& record) {
  const std::optional<WaitReason> reason = ReadValue<WaitReason>(address);
  if (!reason.has_value()) return;
  const std::optional<WaitKind> kind = ReadValue<WaitKind>(reason->kind);
  if (!kind.has_value() || kind->object > WaitObject::kTask) return;
  if (!ReadText(kind->name, kNameReadMax).has_value()) return;
  record.kind = reason->kind;
  record.object = reason->object;
  record.since = reason->since;
  if (kind->object == WaitObject::kTask) {
    record.holder = static_cast<const Task*>(reason->object);
  } else if (kind->holder_word != WaitKind::kNobody) {
    const char* const word = static_cast<const char*>(reason->object) + kind->holder_word;
    record.holder = HolderIn(ReadValue<uintptr_t>(word).value_or(0));
  }
}

// Which pages of an address range are in memory, or were and are in the swap.
class PageMap {
 public:
  PageMap() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap() {
    if (file_ >= 0) close(file_);
  }

  // From the lowest such page in [low, high) to `high`.
  size_t BytesTouched(const char* low, const char* high) const {
    const auto first = reinterpret_cast<uintptr_t>(low) / page_bytes_;
    const auto last = (reinterpret_cast<uintptr_t>(high) - 1) / page_bytes_;
    for (uintptr_t page = first; page <= last;) {
      std::array<uint64_t, 64> entries;
      const size_t wanted = std::min<size_t>(entries.size(), last - page + 1);
      const ssize_t read = pread(file_, entries.data(), wanted * sizeof(uint64_t),
                                 static_cast<off_t>(page * sizeof(uint64_t)));
      if (read <= 0) return 0;
      const size_t count = static_cast<size_t>(read) / sizeof(uint64_t);
      for (size_t i = 0; i < count; ++i) {
        if ((entries[i] & kPresentOrSwapped) == 0) continue;
        return reinterpret_cast<uintptr_t>(high) -
               std::max((page + i) * page_bytes_, reinterpret_cast<uintptr_t>(low));
      }
      page += count;
    }
    return 0;
  }

 private:
  static constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;

  const int file_;
  const uintptr_t page_bytes_ = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
};

}  // namespace

DumpCollector::DumpCollector(const DumpOptions& options)
    : options_(options), deadline_(Deadline::After(options.budget).nanoseconds()) {
  records_.begun = Now();
}

void DumpCollector::Add(RuntimeCore& runtime) {
  RuntimeRecord& record = records_.runtimes.emplace_back();
  const Poller& poller = runtime.carrier(0).poller();
  record.poller = std::string(poller.name());
  record.poller_reason = std::string(poller.reason());
  AskCarriers(runtime, record);
  AddOutsiders(runtime, record);
  MeasureStacks(runtime, record);
  // Threads that are alike stand together, the oldest first.
  std::sort(record.threads.begin(), record.threads.end(),
            [](const ThreadRecord& a, const ThreadRecord& b) { return a.id < b.id; });
}

void DumpCollector::AskCarriers(RuntimeCore& runtime, RuntimeRecord& record) {
  std::vector<std::shared_ptr<DumpPart>> parts;
  std::vector<std::optional<StackSample>> samples;
  for (int i = 0; i < runtime.carrier_count(); ++i) {
    Carrier& carrier = runtime.carrier(i);
    CarrierRecord& asked = record.carriers.emplace_back();
    asked.index = i;
    asked.os_thread = carrier.os_thread();
    const bool is_asleep = carrier.state() == Carrier::State::kAsleep;
    if (is_asleep) asked.status = CarrierStatus::kAsleep;
    const bool may_answer = runtime.has_carriers_here();
    samples.push_back(!may_answer || is_asleep
                          ? std::nullopt
                          : StackSample::Take(asked.os_thread, kSamplePatience));
    parts.push_back(std::make_shared<DumpPart>(runtime.tasks()));
    if (may_answer) carrier.RequestDump(parts.back());
  }

  for (size_t i = 0; i < parts.size(); ++i) {
    CarrierRecord& asked = record.carriers[i];
    if (!runtime.has_carriers_here()) {
      asked.status = CarrierStatus::kEnded;
      continue;
    }
    const bool has_answered = parts[i]->Await(deadline_);
    for (ThreadRecord& thread : parts[i]->Take(records_.traces)) {
      seen_.insert(thread.thread);
      record.threads.push_back(std::move(thread));
    }
    if (has_answered) continue;
    // Where it is now says more than where it was then.
    asked.status = CarrierStatus::kStuck;
    if (auto later = StackSample::Take(asked.os_thread, kStuckPatience)) samples[i] = later;
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].has_value()) AddSample(*samples[i], record.carriers[i], record);
  }
}

void DumpCollector::AddSample(const StackSample& sample, CarrierRecord& carrier,
                              RuntimeRecord& record) {
  if (sample.role != Role::kVirtual) {
    if (carrier.status == CarrierStatus::kStuck) {
      carrier.trace = records_.traces.Add(sample.backtrace);
    }
    return;
  }
  const auto known =
      std::find_if(record.threads.begin(), record.threads.end(), [&](const ThreadRecord& thread) {
        return thread.thread == sample.thread && thread.id == sample.id;
      });
  // It may have ended, or begun to wait, since.
  const bool is_stuck = carrier.status == CarrierStatus::kStuck;
  if (known == record.threads.end() && !is_stuck) return;
  if (known != record.threads.end() && known->status == ThreadStatus::kWaiting) return;
  carrier.running = sample.id;
  ThreadRecord& thread = known != record.threads.end() ? *known : record.threads.emplace_back();
  if (thread.status == ThreadStatus::kRunning) return;  // It has told of itself.
  seen_.insert(sample.thread);
  thread.thread = sample.thread;
  thread.id = sample.id;
  thread.name = sample.name.data();
  thread.carrier = carrier.index;
  thread.status = ThreadStatus::kRunning;
  thread.trace = records_.traces.Add(sample.backtrace);
}

void DumpCollector::AddOutsiders(RuntimeCore& runtime, RuntimeRecord& record) {
  TaskPool& pool = runtime.tasks();
  const size_t end = pool.carved();
  std::vector<std::array<std::byte, sizeof(Task)>> copies(kBlocksPerCopy);
  for (size_t first = 0; first < end;) {
    const size_t count = std::min({kBlocksPerCopy, end - first, TaskPool::RunLengthAt(first)});
    if (ReadMemory(&pool.At(first), copies.data(), count * sizeof(Task))) {
      for (size_t i = 0; i < count; ++i) {
        const Task& task = pool.At(first + i);
        // Only to be looked at: a copy of a Task is no Task.
        const Task& copy = *reinterpret_cast<const Task*>(copies[i].data());
        if (copy.IsLive() && !seen_.contains(&task)) AddOutsider(copy, task, record);
      }
    }
    first += count;
  }
}

void DumpCollector::AddOutsider(const Task& copy, const Task& task, RuntimeRecord& record) {
  const Phase phase = copy.state().phase();
  ThreadRecord thread;
  thread.thread = &task;
  thread.id = copy.id();
  thread.parent = copy.parent_id();
  // Not by name(), which would look at what may have been given back.
  const char* name;
  std::memcpy(&name, reinterpret_cast<const char*>(&copy) + DebuggerView::view.task_name,
              sizeof(name));
  if (name != nullptr) thread.name = ReadText(name, kNameReadMax).value_or("?");
  thread.is_cancelled = copy.is_cancelled();
  if (phase == Phase::kFresh) {
    thread.status = ThreadStatus::kNotStarted;
  } else {
    if (copy.dispatcher() != nullptr) {
      thread.carrier = static_cast<const Carrier*>(copy.dispatcher())->index();
    }
    thread.is_shielded = copy.is_shielded();
    if (IsWaiting(phase)) {
      thread.status = ThreadStatus::kWaiting;
      ReadReason(copy.wait_reason(), thread);
    }
    thread.stack = copy.stack();
    thread.size_class = copy.size_class();
  }
  // If its word is another now, all that was read may be of two times.
  if (task.state().is_same(copy.state())) record.threads.push_back(std::move(thread));
}

void DumpCollector::AddOsThreads() {
  // The caller is of no interest, and carriers have told of themselves.
  absl::flat_hash_set<pid_t> known = {gettid()};
  for (const RuntimeRecord& runtime : records_.runtimes) {
    for (const CarrierRecord& carrier : runtime.carriers) known.insert(carrier.os_thread);
  }
  OsThread::ForEach([&](const OsThread& os_thread) {
    if (known.contains(os_thread.os_thread())) return;
    ThreadRecord& record = records_.os_threads.emplace_back();
    record.thread = &os_thread;
    record.role = os_thread.role();
    record.name = std::string(os_thread.name());
    record.os_thread = os_thread.os_thread();
    record.status = ThreadStatus::kRunning;
    if (!IsWaiting(os_thread.state().phase())) return;
    record.status = ThreadStatus::kWaiting;
    ReadReason(os_thread.wait_reason(), record);
  });
  if (options_.os_thread_stacks == OsThreadStacks::kNone) return;
  for (ThreadRecord& record : records_.os_threads) {
    if (record.role != Role::kPlatform) continue;
    if (const auto sample = StackSample::Take(record.os_thread, kSamplePatience)) {
      record.trace = records_.traces.Add(sample->backtrace);
    }
  }
}

void DumpCollector::MeasureStacks(RuntimeCore& runtime, RuntimeRecord& record) {
  const PageMap pages;
  for (ThreadRecord& thread : record.threads) {
    if (thread.stack.base == nullptr) continue;
    const StackPool& pool = runtime.stacks().OfClass(thread.size_class);
    thread.stack_bytes = pool.BytesOf(thread.stack);
    thread.stack_touched = pages.BytesTouched(pool.LimitOf(thread.stack), pool.TopOf(thread.stack));
  }
}

template <typename Visit>
void DumpCollector::ForEachThread(Visit visit) {
  for (RuntimeRecord& runtime : records_.runtimes) {
    for (ThreadRecord& thread : runtime.threads) visit(thread);
  }
  for (ThreadRecord& thread : records_.os_threads) visit(thread);
}

void DumpCollector::FindHoldersAndCycles() {
  absl::flat_hash_map<const Thread*, const ThreadRecord*> by_thread;
  ForEachThread([&](const ThreadRecord& thread) { by_thread[thread.thread] = &thread; });
  ForEachThread([&](ThreadRecord& thread) {
    if (thread.holder == nullptr) return;
    const auto holder = by_thread.find(thread.holder);
    if (holder != by_thread.end()) thread.held_by = holder->second;
  });

  // Each thread waits for one at most, so a walk along these edges that meets its own trail has
  // found a circle.
  absl::flat_hash_map<const ThreadRecord*, size_t> trail_of;
  size_t trail = 0;
  ForEachThread([&](const ThreadRecord& start) {
    ++trail;
    const ThreadRecord* thread = &start;
    while (thread != nullptr && trail_of.try_emplace(thread, trail).second) {
      thread = thread->held_by;
    }
    if (thread == nullptr || trail_of[thread] != trail) return;
    std::vector<const ThreadRecord*>& cycle = records_.cycles.emplace_back();
    const ThreadRecord* const first = thread;
    do {
      cycle.push_back(thread);
      thread = thread->held_by;
    } while (thread != first);
  });
}

DumpRecords DumpCollector::Finish() && {
  AddOsThreads();
  FindHoldersAndCycles();
  records_.ended = Now();
  return std::move(records_);
}

}  // namespace bobbin::internal
