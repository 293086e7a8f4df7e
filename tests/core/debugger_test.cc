// SPDX-License-Identifier: Apache-2.0
//
// gdb and core/gdb/bobbin-gdb.py, on this very program: it runs a case of its own in which virtual
// threads are parked, stops it there, and looks; then it looks at a core file of it.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/debugger.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {

// Where gdb stops, and what it must find.
[[gnu::noinline]] void AllAreParked() { __asm__ __volatile__("" : : : "memory"); }
[[gnu::noinline]] absl::Status LingerAtTheEvent(Event& event) {
  absl::Status status = event.Wait();
  __asm__ __volatile__("" : : : "memory");  // No tail call.
  return status;
}
[[gnu::noinline]] absl::Status LingerAtTheMutex(Mutex& mutex) {
  const MutexLock lock(mutex);
  return absl::OkStatus();
}
[[gnu::noinline]] absl::Status LingerInBed() {
  absl::Status status = SleepFor(std::chrono::hours(1));
  __asm__ __volatile__("" : : : "memory");
  return status;
}

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// What gdb is shown. Its own core files lack the stacks where the cheap guards are: gcore reads a
// megabyte at a time and drops what has a page in it that cannot be read. The kernel's core files
// are whole.
void BeTheProgram(bool forces_mprotect_guards) {
  Runtime runtime({.carriers = 2, .forces_mprotect_guards = forces_mprotect_guards});
  VirtualThread main = runtime.Spawn({.name = "main"}, [] {
    Event event;
    Mutex mutex;
    mutex.lock();
    ThreadProbe probes[3];
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn({.name = "at the event"}, [&] {
      probes[0].Attach();
      return LingerAtTheEvent(event);
    });
    group.Spawn({.name = "at the mutex", .stack_bytes = size_t{1} << 20}, [&] {
      probes[1].Attach();
      return LingerAtTheMutex(mutex);
    });
    group.Spawn({.name = "in bed"}, [&] {
      probes[2].Attach();
      return LingerInBed();
    });
    for (const ThreadProbe& probe : probes) probe.AwaitParked();
    AllAreParked();
    mutex.unlock();
    group.Cancel();
  });
  EXPECT_OK(main.Join());
}
TEST(DebuggerTest, ThreadsParkInThreeFunctions) { BeTheProgram(false); }
TEST(DebuggerTest, ThreadsParkBesideGuardsOfMprotect) { BeTheProgram(true); }

std::string OutputOf(const std::string& command) {
  std::string output;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  pclose(pipe);
  return output;
}

std::string ThisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string Gdb(const std::string& commands) {
  return "gdb -nx -batch -ex 'set pagination off' -ex 'set confirm off' -ex 'source " +
         std::string(BOBBIN_GDB_SCRIPT) + "' " + commands;
}

// Runs a case of this program up to where all are parked.
std::string RunUnderGdb(const std::string& name, const std::string& commands) {
  return OutputOf(Gdb("-ex 'break AllAreParked' -ex run " + commands + " -ex kill --args " +
                      ThisProgram() + " --gtest_filter='*." + name + "'"));
}

constexpr char kLook[] = " -ex 'bobbin vthreads' -ex 'bobbin bt all' -ex 'bobbin bt 1'";

void ExpectFindsTheParked(const std::string& output) {
  EXPECT_THAT(output, AllOf(HasSubstr("4 virtual threads"),
                            ContainsRegex("#1 \"main\", running on thread [0-9]+\n"),
                            ContainsRegex("#[0-9]+ \"at the event\", started by #1, waiting: event "
                                          "0x[0-9a-f]+"),
                            ContainsRegex("#[0-9]+ \"at the mutex\", started by #1, waiting, "
                                          "shielded: mutex 0x[0-9a-f]+ held by #1 \"main\""),
                            ContainsRegex("#[0-9]+ \"in bed\", started by #1, waiting: sleep")));
  EXPECT_THAT(output,
              AllOf(ContainsRegex("virtual thread #[0-9]+ \"at the event\":\n#1 [^v]*"),
                    ContainsRegex("\"at the event\":\n(#[^\n]*\n)*[^\n]*LingerAtTheEvent[^\n]*\n"
                                  "(#[^\n]*\n)*[^\n]*Enter"),
                    ContainsRegex("\"at the mutex\":\n(#[^\n]*\n)*[^\n]*LingerAtTheMutex[^\n]*\n"
                                  "(#[^\n]*\n)*[^\n]*Enter"),
                    ContainsRegex("\"in bed\":\n(#[^\n]*\n)*[^\n]*LingerInBed[^\n]*\n"
                                  "(#[^\n]*\n)*[^\n]*Enter"),
                    ContainsRegex("virtual thread #1 \"main\":\n#0 [^\n]*AllAreParked")));
}

// Why there can be no test, if there is a reason.
std::string WhyNot() {
  if (kUnderSanitizer) return "a sanitizer and a debugger do not go together";
  if (OutputOf("gdb --version").find("GNU gdb") == std::string::npos) return "gdb is not installed";
  if (OutputOf("gdb -nx -batch -ex run --args true").find("Operation not permitted") !=
      std::string::npos) {
    return "this system lets nobody debug";
  }
  return "";
}

TEST(DebuggerTest, GdbFindsParkedThreadsInALiveProcess) {
  if (const std::string reason = WhyNot(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string output = RunUnderGdb("ThreadsParkInThreeFunctions", kLook);
  SCOPED_TRACE(output);
  ExpectFindsTheParked(output);
  EXPECT_THAT(output, ContainsRegex("\"at the event\"[^\n]*, for [0-9.]+ s\n"));
}

TEST(DebuggerTest, GdbFindsParkedThreadsInACore) {
  if (const std::string reason = WhyNot(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string core =
      (std::filesystem::temp_directory_path() / ("bobbin-core-" + std::to_string(getpid())))
          .string();
  const std::string making =
      RunUnderGdb("ThreadsParkBesideGuardsOfMprotect", "-ex 'gcore " + core + "'");
  const std::string output = OutputOf(Gdb(kLook + (" " + ThisProgram()) + " " + core));
  std::filesystem::remove(core);
  SCOPED_TRACE(making + output);
  ExpectFindsTheParked(output);
}

}  // namespace
}  // namespace bobbin::test
