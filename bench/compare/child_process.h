// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: this program once more, with other arguments, and what it says on its standard
// output.
//
// The child is in a process group of its own, so that a Ctrl-C reaches only this process, which
// ends the child. It also ends when this process does, however that happens.
//
//   Called from   one platform or foreign thread, the one that started it: the child would end with
//                 it.
//   Suspends      ReadFor and Wait block.
//   Lifetime      The destructor kills the child and waits for its end.

#ifndef BOBBIN_BENCH_COMPARE_CHILD_PROCESS_H_
#define BOBBIN_BENCH_COMPARE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "bench/echo/unique_fd.h"

namespace bobbin::compare {

class ChildProcess {
 public:
  // `arguments` are those after the program's name.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Takes up what the child writes, for `time` at most; also returns when a signal arrives. False
  // when nothing more will come.
  bool ReadFor(std::chrono::milliseconds time);

  // What it has written so far.
  const std::string& output() const { return output_; }

  // Waits for its end. OK when it ended by itself and said that all went well.
  absl::Status Wait();

  // The first thing that a process does which was started this way.
  static void EndWithParent();

 private:
  ChildProcess(pid_t process, bench::UniqueFd pipe) : process_(process), pipe_(std::move(pipe)) {}

  pid_t process_;  // 0 when it has been waited for.
  bench::UniqueFd pipe_;
  std::string output_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_CHILD_PROCESS_H_
