// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"

#include <bobbin/core/internal/simulator.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/testing/clock.h>
#include <bobbin/testing/os_thread.h>
#include <bobbin/testing/simulate.h>

#include "sched/src/depth_first_chooser.h"
#include "sched/src/random_chooser.h"

namespace bobbin::testing {

namespace {

using bobbin::internal::DepthFirstChooser;
using bobbin::internal::RandomChooser;
using bobbin::internal::Simulator;

// When every run begins: monotonic, and on the calendar.
constexpr std::chrono::nanoseconds kStart = std::chrono::hours(1);
constexpr WallTime kWallStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

// Of the run that is being made, for whoever looks at a process that dies in it, and for the wall
// clock.
uint64_t present_seed = 0;
std::chrono::nanoseconds wall_offset{0};

// A handler must not format or allocate; but the process has nothing left to lose.
void NameTheSeed(int signal) noexcept {
  std::signal(signal, SIG_DFL);
  if (const Simulator* const simulator = Simulator::Active()) {
    std::fprintf(stderr, "BOBBIN_SIM_SEED=%llu\n", static_cast<unsigned long long>(present_seed));
    std::fputs(simulator->Describe(fmt::format("it dies by signal {}", signal)).c_str(), stderr);
  }
  raise(signal);
}

void InstallNameTheSeed() {
  static const bool is_installed = [] {
    struct sigaction action {};
    action.sa_handler = &NameTheSeed;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  static_cast<void>(is_installed);
}

std::optional<uint64_t> FromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

// One run.
struct Attempt {
  bobbin::internal::Chooser& chooser;
  int carriers;
  uint64_t steps_max;
  bool (*has_failed)();
  absl::AnyInvocable<void()> begins = [] {};
  absl::AnyInvocable<void()> ends = [] {};
};

// What is left although every virtual thread has ended. A carrier publishes what it has when it
// goes to sleep, which may be a moment later.
std::string LeftIn(const Runtime& runtime) {
  RuntimeStatistics now = runtime.Statistics();
  for (int looks = 0; looks < 100 && (now.timers != 0 || now.live() != 0); ++looks) {
    static_cast<void>(SleepFor(std::chrono::milliseconds(1)));
    now = runtime.Statistics();
  }
  if (now.live() == 0 && now.timers == 0) return {};
  return fmt::format("left over: {} virtual threads, {} timers\n{}", now.live(), now.timers,
                     runtime.Dump());
}

void RunOnRuntime(Simulator& simulator, Attempt& attempt, internal::Body& body) {
  RuntimeOptions options{.carriers = attempt.carriers};
  // The simulation sees a deadlock by itself, and nobody holds a carrier for long. Without the two,
  // a runtime of one carrier has no monitor, and an exploration so much less to try.
  options.watchdog.limit = std::chrono::nanoseconds(0);
  options.deadlock.action = OnDeadlock::kIgnore;
  Runtime runtime(std::move(options));
  simulator.set_describe([&runtime] { return runtime.Dump(); });
  const absl::Status status = runtime
                                  .Spawn({.name = "body"},
                                         [&] {
                                           attempt.begins();
                                           absl::Status result = body();
                                           attempt.ends();
                                           return result;
                                         })
                                  .Join();
  if (!status.ok()) simulator.Fail("the body returns " + status.ToString());
  const absl::Status idle = runtime.AwaitIdle();
  if (!idle.ok()) simulator.Fail("the runtime does not become idle: " + idle.ToString());
  const std::string left = LeftIn(runtime);
  if (!left.empty()) simulator.Fail(left);
  const absl::Status end = runtime.Shutdown();
  if (!end.ok()) simulator.Fail("the runtime's end: " + end.ToString());
  simulator.set_describe(nullptr);
}

// Adds to the report; false when the run was bad.
bool Make(Attempt attempt, internal::Body& body, SimulationReport& report) {
  InstallNameTheSeed();
  wall_offset = std::chrono::nanoseconds(0);
  Simulator simulator(attempt.chooser,
                      {.steps_max = attempt.steps_max, .starts_at = kStart.count()});
  simulator.Run([&] {
    if (attempt.carriers != 0) return RunOnRuntime(simulator, attempt, body);
    attempt.begins();
    const absl::Status status = body();
    attempt.ends();
    if (!status.ok()) simulator.Fail("the body returns " + status.ToString());
  });
  ++report.runs;
  report.steps += simulator.steps();
  report.failure = simulator.failure();
  if (report.failure.empty() && attempt.has_failed != nullptr && attempt.has_failed()) {
    report.failure = "the test has failed";
  }
  return report.failure.empty();
}

void Print(const SimulationReport& report, std::string_view repeat, bool is_quiet) {
  if (is_quiet) return;
  std::fprintf(stderr, "bobbin: a simulation fails: %s\n%.*s\n", report.failure.c_str(),
               static_cast<int>(repeat.size()), repeat.data());
}

// What is made once in a process is made before the first run that counts, so that a run does not
// depend on those before it. What fails already there fails.
const SimulationReport& WarmUp() {
  static const SimulationReport warm = [] {
    const SimulationOptions options;
    RandomChooser chooser(0, options);
    internal::Body nothing = [] { return Spawn([] {}).Join(); };
    SimulationReport report;
    if (!Make({.chooser = chooser,
               .carriers = 2,
               .steps_max = options.steps_max,
               .has_failed = nullptr},
              nothing, report)) {
      Print(report, "before the first run", false);
    }
    return report;
  }();
  return warm;
}

}  // namespace

namespace internal {

SimulationReport SimulateBody(const SimulationOptions& options, Body body) {
  if (const SimulationReport& warm = WarmUp(); !warm.ok()) return warm;
  uint64_t first = options.first_seed;
  uint64_t count =
      FromEnvironment("BOBBIN_SIM_SEEDS").value_or(static_cast<uint64_t>(options.seeds));
  if (const std::optional<uint64_t> only = FromEnvironment("BOBBIN_SIM_SEED")) {
    first = *only;
    count = 1;
  }
  SimulationReport report;
  for (uint64_t seed = first; seed - first < count; ++seed) {
    present_seed = report.seed = seed;
    RandomChooser chooser(seed, options);
    if (Make({.chooser = chooser,
              .carriers = options.carriers,
              .steps_max = options.steps_max,
              .has_failed = options.has_failed},
             body, report)) {
      continue;
    }
    Print(report, fmt::format("BOBBIN_SIM_SEED={}", seed), options.is_quiet);
    break;
  }
  return report;
}

SimulationReport ExploreBody(const ExplorationOptions& options, Body body) {
  if (const SimulationReport& warm = WarmUp(); !warm.ok()) return warm;
  DepthFirstChooser chooser(options);
  SimulationReport report;
  for (bool has_more = true; has_more && report.runs < options.runs_max;) {
    present_seed = report.seed = report.runs + 1;
    chooser.BeginRun();
    if (!Make({.chooser = chooser,
               .carriers = options.carriers,
               .steps_max = options.steps_max,
               .has_failed = options.has_failed,
               .begins = [&chooser] { chooser.Open(); },
               .ends = [&chooser] { chooser.Close(); }},
              body, report)) {
      Print(report, fmt::format("in run {} of an exploration", report.runs), options.is_quiet);
      return report;
    }
    has_more = chooser.Advance();
    report.is_complete = !has_more;
  }
  return report;
}

}  // namespace internal

uint64_t PresentRun() { return present_seed; }

// --- Threads and clocks.

OsThread::OsThread(absl::AnyInvocable<void() &&> body)
    : number_(Simulator::Active()->StartThread("foreign", std::move(body))) {}

OsThread::OsThread(OsThread&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

OsThread& OsThread::operator=(OsThread&& other) noexcept {
  if (this != &other) {
    if (is_joinable()) Join();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

OsThread::~OsThread() {
  if (is_joinable()) Join();
}

void OsThread::Join() { Simulator::Active()->JoinThread(std::exchange(number_, -1)); }

WallTime WallNow() {
  return kWallStart + (MonotonicNow().time_since_epoch() - kStart) + wall_offset;
}

void StepWallClock(std::chrono::nanoseconds step) { wall_offset += step; }

void AdvanceTime(std::chrono::nanoseconds time) { Simulator::Active()->Advance(time.count()); }

}  // namespace bobbin::testing
