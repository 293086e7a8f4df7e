// SPDX-License-Identifier: Apache-2.0

#include "io/src/spawn_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace bobbin::io::internal {

namespace {

constexpr int kFirstOwnDescriptor = 3;

// What the new process does before it begins; the first failure is kept.
class SpawnActions {
 public:
  SpawnActions() { error_ = ::posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  void Duplicate(int fd, int stream) {
    Keep(::posix_spawn_file_actions_adddup2(&actions_, fd, stream));
  }
  void OpenNull(int stream) {
    Keep(::posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null",
                                            stream == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0));
  }
  void ChangeDirectory(const std::string& directory) {
    Keep(::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str()));
  }
  void CloseOthers() {
    Keep(::posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstOwnDescriptor));
  }

  int error() const { return error_; }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void Keep(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  int error_;
};

// No signal is blocked, none is ignored: platform threads block nearly all.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    error_ = ::posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }

  int error() const { return error_; }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
  int error_;
};

// A pipe whose ends are no standard streams: what the new process does with those, one after the
// other, must not hit them.
Result MakeStandardPipe(FileDescriptor& reader, FileDescriptor& writer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -errno;
  reader = FileDescriptor(ends[0]);
  writer = FileDescriptor(ends[1]);
  for (FileDescriptor* const end : {&reader, &writer}) {
    if (end->get() >= kFirstOwnDescriptor) continue;
    FileDescriptor moved(::fcntl(end->get(), F_DUPFD_CLOEXEC, kFirstOwnDescriptor));
    if (!moved.is_open()) return -errno;
    *end = std::move(moved);
  }
  return 0;
}

// The pointers to `texts` that exec(2) wants.
std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result SpawnProcess(const ProcessOptions& options, SpawnedProcess& process) {
  SpawnActions actions;
  const StandardStream kinds[] = {options.input, options.output, options.error};
  std::array<FileDescriptor, 3> others;
  for (int stream = 0; stream < 3; ++stream) {
    const auto i = static_cast<size_t>(stream);
    if (kinds[i] == StandardStream::kNull) actions.OpenNull(stream);
    if (kinds[i] != StandardStream::kPipe) continue;
    const bool is_input = stream == STDIN_FILENO;
    const Result made = is_input ? MakeStandardPipe(others[i], process.streams[i])
                                 : MakeStandardPipe(process.streams[i], others[i]);
    if (made < 0) return made;
    actions.Duplicate(others[i].get(), stream);
  }
  if (!options.directory.empty()) actions.ChangeDirectory(options.directory);
  actions.CloseOthers();
  const SpawnAttributes attributes;
  if (actions.error() != 0) return -actions.error();
  if (attributes.error() != 0) return -attributes.error();

  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), options.program);
  std::vector<std::string> environment = options.environment.value_or(std::vector<std::string>());
  const std::vector<char*> argument_pointers = PointersTo(arguments);
  const std::vector<char*> environment_pointers = PointersTo(environment);
  const int error =
      ::posix_spawnp(&process.id, options.program.c_str(), actions.get(), attributes.get(),
                     argument_pointers.data(),
                     options.environment.has_value() ? environment_pointers.data() : environ);
  if (error != 0) return -error;

  // Nobody has waited for it, so the number is still its own.
  process.handle = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process.id, 0)));
  if (process.handle.is_open()) return 0;
  const int why = errno;
  ::kill(process.id, SIGKILL);
  ::waitpid(process.id, nullptr, 0);
  return -why;
}

}  // namespace bobbin::io::internal
