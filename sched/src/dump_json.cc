// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"

#include <bobbin/core/role.h>

#include "sched/src/dump_records.h"
#include "sched/src/json.h"

namespace bobbin::internal {

namespace {

std::string_view StatusWord(ThreadStatus status) {
  switch (status) {
    case ThreadStatus::kNotStarted:
      return "not_started";
    case ThreadStatus::kRunning:
      return "running";
    case ThreadStatus::kReady:
      return "ready";
    case ThreadStatus::kWaiting:
      return "waiting";
  }
  return "?";
}

std::string_view StatusWord(CarrierStatus status) {
  switch (status) {
    case CarrierStatus::kAwake:
      return "awake";
    case CarrierStatus::kAsleep:
      return "asleep";
    case CarrierStatus::kStuck:
      return "stuck";
    case CarrierStatus::kEnded:
      return "ended";
  }
  return "?";
}

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

void AddWho(Json& json, const ThreadRecord& thread) {
  json.Member("role", RoleName(thread.role));
  if (thread.role == Role::kVirtual) json.Member("id", thread.id);
  if (thread.os_thread != 0) json.Member("os_thread", thread.os_thread);
  json.Member("name", std::string_view(thread.name));
}

void AddWait(Json& json, const ThreadRecord& thread, int64_t now) {
  json.Open("wait", '{');
  json.Member("kind", std::string_view(thread.kind->name));
  if (thread.kind->object == WaitObject::kAddress) {
    json.Key("object");
    json.Address(thread.object);
  } else if (thread.kind->object == WaitObject::kDescriptor) {
    json.Member("descriptor", reinterpret_cast<intptr_t>(thread.object));
  }
  if (thread.since != 0) json.Member("seconds", Seconds(now - thread.since));
  if (thread.deadline.has_value()) json.Member("seconds_left", Seconds(*thread.deadline - now));
  if (thread.held_by != nullptr) {
    json.Open("held_by", '{');
    AddWho(json, *thread.held_by);
    json.Close('}');
  }
  json.Close('}');
}

void AddThread(Json& json, const ThreadRecord& thread, int64_t now) {
  json.Open('{');
  AddWho(json, thread);
  json.Member("state", StatusWord(thread.status));
  if (thread.parent != 0) json.Member("parent", thread.parent);
  if (thread.carrier >= 0) json.Member("carrier", thread.carrier);
  if (thread.kind != nullptr) AddWait(json, thread, now);
  if (thread.is_cancelled) json.Member("is_cancelled", std::string_view("yes"));
  if (thread.is_shielded) json.Member("is_shielded", std::string_view("yes"));
  if (thread.stack_bytes != 0) {
    json.Member("stack_bytes", thread.stack_bytes);
    if (thread.stack_used != 0) json.Member("stack_used", thread.stack_used);
    json.Member("stack_touched", thread.stack_touched);
  }
  if (thread.trace != TraceTable::kNone) json.Member("trace", thread.trace - 1);
  json.Close('}');
}

void AddThreads(Json& json, const std::vector<ThreadRecord>& threads, int64_t now) {
  for (const ThreadRecord& thread : threads) AddThread(json, thread, now);
}

void AddRuntime(Json& json, const RuntimeRecord& runtime, int64_t now) {
  json.Open('{');
  json.Member("poller", std::string_view(runtime.poller));
  if (!runtime.poller_reason.empty()) {
    json.Member("poller_reason", std::string_view(runtime.poller_reason));
  }
  json.Open("carriers", '[');
  for (const CarrierRecord& carrier : runtime.carriers) {
    json.Open('{');
    json.Member("index", carrier.index);
    json.Member("os_thread", carrier.os_thread);
    json.Member("state", StatusWord(carrier.status));
    if (carrier.running != 0) json.Member("runs", carrier.running);
    if (carrier.trace != TraceTable::kNone) json.Member("trace", carrier.trace - 1);
    json.Close('}');
  }
  json.Close(']');
  json.Open("threads", '[');
  AddThreads(json, runtime.threads, now);
  json.Close(']');
  json.Close('}');
}

void AddTraces(Json& json, const TraceTable& traces) {
  json.Open("traces", '[');
  for (uint32_t number = 1; number <= traces.size(); ++number) {
    json.Open('[');
    for (const void* const frame : traces.frames(number)) {
      json.Open('{');
      json.Key("address");
      json.Address(frame);
      json.Member("function", std::string_view(FrameName(frame)));
      json.Close('}');
    }
    json.Close(']');
  }
  json.Close(']');
}

}  // namespace

std::string WriteJson(const DumpRecords& records) {
  Json json;
  json.Open('{');
  json.Member("seconds", Seconds(records.ended - records.begun));
  json.Open("runtimes", '[');
  for (const RuntimeRecord& runtime : records.runtimes) AddRuntime(json, runtime, records.begun);
  json.Close(']');
  json.Open("os_threads", '[');
  AddThreads(json, records.os_threads, records.begun);
  json.Close(']');
  json.Open("cycles", '[');
  for (const auto& cycle : records.cycles) {
    json.Open('[');
    for (const ThreadRecord* const thread : cycle) {
      json.Open('{');
      AddWho(json, *thread);
      json.Close('}');
    }
    json.Close(']');
  }
  json.Close(']');
  AddTraces(json, records.traces);
  json.Close('}');
  return std::move(json).Take();
}

}  // namespace bobbin::internal
