// SPDX-License-Identifier: Apache-2.0
//
// The dumps of a simulation: in the place of dump.cc and dump_collector.cc. There is one OS thread,
// so what the others do can be read as it is; nobody needs to be asked, and nobody can answer.

#include <cstdio>
#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>

#include "sched/src/current_runtime.h"
#include "sched/src/dump.h"
#include "sched/src/dump_records.h"
#include "sched/src/runtime_core.h"

namespace bobbin {

namespace internal {

namespace {

ThreadRecord RecordOf(const Task& task) {
  ThreadRecord record;
  record.thread = &task;
  record.id = task.id();
  record.parent = task.parent_id();
  record.name = std::string(task.name());
  record.is_cancelled = task.is_cancelled();
  const Phase phase = task.state().phase();
  if (phase == Phase::kFresh) {
    record.status = ThreadStatus::kNotStarted;
    return record;
  }
  record.is_shielded = task.is_shielded();
  if (task.dispatcher() != nullptr) {
    record.carrier = static_cast<const Carrier*>(task.dispatcher())->index();
  }
  if (!IsWaiting(phase) || task.wait_reason() == nullptr) return record;
  record.status = ThreadStatus::kWaiting;
  record.kind = task.wait_reason()->kind;
  record.object = task.wait_reason()->object;
  record.since = task.wait_reason()->since;
  return record;
}

}  // namespace

void RegisterRuntime(RuntimeCore&) {}
void UnregisterRuntime(RuntimeCore&) noexcept {}

std::string DumpRuntimes(RuntimeCore* only, const DumpOptions& options) {
  Runtime* const current = only == nullptr ? CurrentRuntimeOrNull() : &only->facade();
  DumpRecords records;
  records.begun = MonotonicNow().time_since_epoch().count();
  records.ended = records.begun;
  if (current != nullptr) {
    RuntimeRecord& runtime = records.runtimes.emplace_back();
    current->core().tasks().ForEach([&](const Task& task) {
      if (task.IsLive()) runtime.threads.push_back(RecordOf(task));
    });
  }
  return options.format == DumpFormat::kJson ? WriteJson(records)
                                             : WriteText(records, options.listed_max);
}

void DumpForFailedCheck() noexcept { std::fputs(DumpRuntimes(nullptr, {}).c_str(), stderr); }

}  // namespace internal

std::string Dump(const DumpOptions& options) { return internal::DumpRuntimes(nullptr, options); }

void DumpOnSignal(int, const DumpOptions&) {
  BOBBIN_CHECK(false, "a simulation handles no signals");
}

}  // namespace bobbin
