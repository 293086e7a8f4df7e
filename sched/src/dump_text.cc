// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fmt/format.h"

#include <bobbin/core/role.h>

#include "sched/src/dump_records.h"

namespace bobbin::internal {

namespace {

bool StartsWithAny(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Below the functions that a user knows lies how a thread parks, above them how it begins: the same
// for all.
bool IsOfParking(std::string_view name) {
  return StartsWithAny(name, {"bobbin::internal::Dispatcher::", "bobbin::internal::Thread::Park",
                              "bobbin::internal::Waiter::Park"});
}
bool IsOfBeginning(std::string_view name) {
  return StartsWithAny(
      name, {"bobbin::internal::Body::", "bobbin::internal::Task::RunBody",
             "bobbin::internal::Dispatcher::RunTasks", "bobbin::internal::SwitchEntry::Enter"});
}

std::string_view StatusName(ThreadStatus status) {
  switch (status) {
    case ThreadStatus::kNotStarted:
      return "not started";
    case ThreadStatus::kRunning:
      return "running";
    case ThreadStatus::kReady:
      return "ready";
    case ThreadStatus::kWaiting:
      return "waiting";
  }
  return "?";
}

class TextWriter {
 public:
  TextWriter(const DumpRecords& records, size_t listed_max)
      : records_(records), listed_max_(listed_max), texts_(records.traces.size() + 1) {}

  std::string Write() && {
    for (const RuntimeRecord& runtime : records_.runtimes) AddRuntime(runtime);
    if (!records_.os_threads.empty()) {
      Add("\nOS threads that are no carriers: {}\n", records_.os_threads.size());
      AddGroups(records_.os_threads);
    }
    AddCycles();
    Add("\ntaken in {:.3f} ms\n", static_cast<double>(records_.ended - records_.begun) / 1e6);
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void Add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }

  void AddRuntime(const RuntimeRecord& runtime) {
    size_t counts[4] = {};
    for (const ThreadRecord& thread : runtime.threads) ++counts[static_cast<size_t>(thread.status)];
    Add("virtual threads: {} ({} not started, {} running, {} ready, {} waiting)\n",
        runtime.threads.size(), counts[0], counts[1], counts[2], counts[3]);
    if (!runtime.poller_reason.empty()) Add("{}: {}\n", runtime.poller, runtime.poller_reason);
    for (const CarrierRecord& carrier : runtime.carriers) AddCarrier(carrier);
    AddGroups(runtime.threads);
  }

  void AddCarrier(const CarrierRecord& carrier) {
    Add("carrier {}, OS thread {}: ", carrier.index, carrier.os_thread);
    switch (carrier.status) {
      case CarrierStatus::kAwake:
        Add("awake");
        break;
      case CarrierStatus::kAsleep:
        Add("asleep");
        break;
      case CarrierStatus::kStuck:
        Add("does not come round");
        break;
      case CarrierStatus::kEnded:
        Add("is not in this process");
        break;
    }
    if (carrier.running != 0) Add(", runs #{}", carrier.running);
    Add("\n");
    AddTrace(carrier.trace);
  }

  // Threads that do the same at the same place, the largest group first.
  void AddGroups(const std::vector<ThreadRecord>& threads) {
    using Group = std::vector<const ThreadRecord*>;
    std::map<std::tuple<ThreadStatus, const WaitKind*, uint32_t>, Group> groups;
    for (const ThreadRecord& thread : threads) {
      groups[{thread.status, thread.kind, thread.trace}].push_back(&thread);
    }
    std::vector<const Group*> ordered;
    for (const auto& group : groups) ordered.push_back(&group.second);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Group* a, const Group* b) { return a->size() > b->size(); });
    for (const Group* const group : ordered) AddGroup(*group);
  }

  void AddGroup(const std::vector<const ThreadRecord*>& group) {
    const ThreadRecord& first = *group.front();
    Add("\n{} {}", group.size(), StatusName(first.status));
    if (first.kind != nullptr) Add(": {}", first.kind->name);
    Add("\n");
    const size_t listed = std::min(group.size(), listed_max_);
    for (size_t i = 0; i < listed; ++i) AddThread(*group[i]);
    if (listed < group.size()) Add("  and {} more\n", group.size() - listed);
    AddTrace(first.trace);
  }

  void AddThread(const ThreadRecord& thread) {
    Add("  ");
    AddName(thread);
    if (thread.parent != 0) Add(" from #{}", thread.parent);
    if (thread.os_thread != 0) Add(", OS thread {}", thread.os_thread);
    if (thread.carrier >= 0) Add(", carrier {}", thread.carrier);
    if (thread.kind != nullptr) AddWait(thread);
    if (thread.is_cancelled) Add(", asked to stop");
    if (thread.is_shielded) Add(", shielded");
    if (thread.stack_used != 0) Add(", stack {} B", thread.stack_used);
    if (thread.stack_bytes != 0) Add(", {} KiB touched", (thread.stack_touched + 1023) / 1024);
    Add("\n");
  }

  void AddName(const ThreadRecord& thread) {
    if (thread.role == Role::kVirtual) {
      Add("#{}", thread.id);
    } else {
      Add("{} thread", RoleName(thread.role));
    }
    if (!thread.name.empty()) Add(" \"{}\"", thread.name);
  }

  void AddObject(const ThreadRecord& thread) {
    switch (thread.kind->object) {
      case WaitObject::kNone:
        return;
      case WaitObject::kAddress:
        Add(" {}", thread.object);
        return;
      case WaitObject::kDescriptor:
        Add(" on descriptor {}", reinterpret_cast<intptr_t>(thread.object));
        return;
      case WaitObject::kTask:
        if (thread.held_by == nullptr) return;
        Add(" of ");
        AddName(*thread.held_by);
        return;
    }
  }

  void AddWait(const ThreadRecord& thread) {
    Add(", {}", thread.kind->name);
    AddObject(thread);
    if (thread.kind->object != WaitObject::kTask && thread.held_by != nullptr) {
      Add(" held by ");
      AddName(*thread.held_by);
    }
    if (thread.since != 0) {
      Add(", for {:.3f} s",
          static_cast<double>(std::max<int64_t>(0, records_.begun - thread.since)) / 1e9);
    }
    if (thread.deadline.has_value()) {
      Add(", {:.3f} s left", static_cast<double>(*thread.deadline - records_.begun) / 1e9);
    }
  }

  void AddTrace(uint32_t trace) {
    if (trace == TraceTable::kNone) return;
    std::string& text = texts_[trace];
    if (text.empty()) {
      const std::span<const void* const> frames = records_.traces.frames(trace);
      std::vector<std::string> names;
      for (const void* const frame : frames) names.push_back(FrameName(frame));
      size_t first = 0;
      size_t end = names.size();
      while (first < end && IsOfParking(names[first])) ++first;
      while (first < end && IsOfBeginning(names[end - 1])) --end;
      for (size_t i = first; i < end; ++i) {
        fmt::format_to(std::back_inserter(text), "    {} {}\n", frames[i],
                       names[i].empty() ? "?" : names[i]);
      }
      if (records_.traces.is_cut(trace)) text += "    ...\n";
    }
    text_ += text;
  }

  void AddCycles() {
    for (const auto& cycle : records_.cycles) {
      Add("\n{} wait for each other:\n", cycle.size());
      for (const ThreadRecord* const thread : cycle) {
        Add("  ");
        AddName(*thread);
        AddWait(*thread);
        Add("\n");
      }
    }
  }

  const DumpRecords& records_;
  const size_t listed_max_;
  std::string text_;
  std::vector<std::string> texts_;  // Of traces that have been written before.
};

}  // namespace

std::string WriteText(const DumpRecords& records, size_t listed_max) {
  return TextWriter(records, listed_max).Write();
}

}  // namespace bobbin::internal
