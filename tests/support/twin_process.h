// SPDX-License-Identifier: Apache-2.0
//
// TwinProcess: this program once more, in a process of its own, which runs the same case.
//
// The case looks first whether it is the twin: then it does its part and returns. What the two have
// to tell each other they put where the test is about anyway, such as a file.
//
//   Called from   any thread.
//   Suspends      Wait and AwaitStopped; they block an OS thread of the default pool meanwhile. The
//                 destructor blocks for as long as the kernel takes to end a process.
//   Lifetime      what has not been waited for is killed at the end.
//
// Example:
//   if (const char* const path = TwinProcess::Errand()) return Claim(path);
//   TwinProcess twin(path);
//   EXPECT_THAT(twin.Wait(), IsOkAndHolds(0));

#ifndef BOBBIN_TESTS_SUPPORT_TWIN_PROCESS_H_
#define BOBBIN_TESTS_SUPPORT_TWIN_PROCESS_H_

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/run_blocking.h>

namespace bobbin::test {

class TwinProcess {
 public:
  // What the twin was told; null in the first process. The twin ends with that, however that ends.
  static const char* Errand() {
    const char* const errand = std::getenv(kVariable);
    if (errand != nullptr) {
      EXPECT_EQ(::prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
    }
    return errand;
  }

  explicit TwinProcess(std::string_view errand) {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string program = "/proc/self/exe";
    std::string filter =
        std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
    std::string once = "--gtest_repeat=1";
    std::string variable = std::string(kVariable) + "=" + std::string(errand);
    std::vector<char*> environment = {variable.data()};
    for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
    environment.push_back(nullptr);
    char* const arguments[] = {program.data(), filter.data(), once.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&id_, program.c_str(), nullptr, nullptr, arguments, environment.data()),
              0);
  }
  TwinProcess(const TwinProcess&) = delete;
  TwinProcess& operator=(const TwinProcess&) = delete;
  ~TwinProcess() { Kill(); }

  pid_t id() const { return id_; }
  // Waits until it has stopped itself, by StopHere.
  absl::Status AwaitStopped() {
    return RunBlocking([this]() -> absl::Status {
      int how = 0;
      const pid_t stopped = ::waitpid(id_, &how, WUNTRACED);
      if (stopped == id_ && WIFSTOPPED(how)) return absl::OkStatus();
      if (stopped == id_) id_ = 0;
      return MakeStatus(absl::StatusCode::kInternal, "wait for a process: it has ended");
    });
  }
  void Continue() const { EXPECT_EQ(::kill(id_, SIGCONT), 0); }
  // In the twin: stops all of it, until the first process has it continue. The calling thread does
  // nothing more, as it would if the signal went to another one.
  static void StopHere() { EXPECT_EQ(::raise(SIGSTOP), 0); }
  // As a crash: nothing of it runs any more when this returns.
  void Kill() {
    if (id_ <= 0) return;
    EXPECT_EQ(::kill(id_, SIGKILL), 0);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
  }
  // How it has ended, as waitpid says.
  absl::StatusOr<int> Wait() {
    return RunBlocking([this]() -> absl::StatusOr<int> {
      int how = 0;
      const pid_t ended = ::waitpid(id_, &how, 0);
      if (ended != id_) return ErrnoStatus(errno, "wait for a process");
      id_ = 0;
      return how;
    });
  }

 private:
  static constexpr char kVariable[] = "BOBBIN_TEST_TWIN";

  pid_t id_ = 0;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_TWIN_PROCESS_H_
