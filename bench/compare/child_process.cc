// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>

namespace bobbin::compare {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make a pipe");
  bench::UniqueFd read_end(ends[0]);
  const bench::UniqueFd write_end(ends[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy_actions = [&] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy_attributes = [&] { posix_spawnattr_destroy(&attributes); };
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<std::string> words = {"bobbin-compare"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  pid_t process = 0;
  if (const int error =
          posix_spawn(&process, kThisProgram, &actions, &attributes, pointers.data(), environ);
      error != 0) {
    return ErrnoStatus(error, "start this program again");
  }
  return ChildProcess(process, std::move(read_end));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      pipe_(std::move(other.pipe_)),
      output_(std::move(other.output_)) {}

ChildProcess::~ChildProcess() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  Wait().IgnoreError();
}

bool ChildProcess::ReadFor(std::chrono::milliseconds time) {
  pollfd readable{.fd = pipe_.get(), .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, static_cast<int>(time.count())) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t received = read(pipe_.get(), buffer.data(), buffer.size());
  if (received > 0) output_.append(buffer.data(), static_cast<size_t>(received));
  return received > 0 || (received < 0 && errno == EINTR);
}

absl::Status ChildProcess::Wait() {
  int how = 0;
  pid_t ended;
  do {
    ended = waitpid(process_, &how, 0);
  } while (ended < 0 && errno == EINTR);
  process_ = 0;
  if (ended < 0) return ErrnoStatus(errno, "wait for a process");
  if (WIFSIGNALED(how)) {
    return MakeStatus(absl::StatusCode::kInternal,
                      fmt::format("the process was ended by SIG{}", sigabbrev_np(WTERMSIG(how))));
  }
  if (WEXITSTATUS(how) != 0) {
    return MakeStatus(absl::StatusCode::kInternal,
                      fmt::format("the process ended with exit code {}", WEXITSTATUS(how)));
  }
  return absl::OkStatus();
}

void ChildProcess::EndWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace bobbin::compare
