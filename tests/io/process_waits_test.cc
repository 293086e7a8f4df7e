// SPDX-License-Identifier: Apache-2.0
//
// The waits for processes, one by one, as docs/waits.md lists them.

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/io/pipe.h>
#include <bobbin/io/process.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/runtime.h>

#include "tests/io/busy_lane.h"
#include "tests/io/io_test.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using io::Process;
using io::StandardStream;

// A process that is deaf to SIGTERM, and ends when its input does.
struct Deaf {
  Deaf() {
    process = Process::Spawn({.program = "/bin/sh",
                              .arguments = {"-c", "trap '' TERM; echo; read line; exit 0"},
                              .input = StandardStream::kPipe,
                              .output = StandardStream::kPipe,
                              .stop_budget = std::chrono::hours(1)})
                  .value();
    input = std::move(process.input());
    std::array<std::byte, 1> ready;
    EXPECT_OK(process.output().ReadExact(ready));
  }
  Process process;
  io::PipeWriter input;
};

template <typename Call>
std::function<WaitStage(Runtime&)> WithADeafProcess(Call call) {
  return [call](Runtime&) -> WaitStage {
    auto deaf = std::make_shared<Deaf>();
    return {
        .wait = [deaf, call] { return call(deaf->process); },
        .satisfy = [deaf] { deaf->input.Close(); },
        .sight_on_os_threads = Sight::kBlurred,
        .is_satisfied = [deaf] { return !deaf->process || deaf->process.TryWait()->has_value(); }};
  };
}

WaitStage SpawningWhileAllAreBusy(Runtime& runtime) {
  auto busy = std::make_shared<BusyLane>(runtime, internal::BlockingLane::kGeneral);
  return {.wait =
              [] {
                auto process = Process::Spawn({.program = "true"});
                return process.ok() ? process->Wait().status() : process.status();
              },
          .satisfy = [busy] { busy->LetGo(); },
          .waiters = Waiters::kVirtual};
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"Process::Spawn", SpawningWhileAllAreBusy},
      {"Process::Wait", WithADeafProcess([](Process& process) { return process.Wait().status(); })},
      {"Process::Stop", WithADeafProcess([](Process& process) {
         return process.Stop(std::chrono::hours(1)).status();
       })},
      {"Process::~Process", WithADeafProcess([](Process& process) {
         process = Process();
         return absl::OkStatus();
       })},
  };
  return stages;
}

BOBBIN_IO_FOREIGN_TEST(ProcessWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("processes", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
