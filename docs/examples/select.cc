// SPDX-License-Identifier: Apache-2.0
//
// Select: several things to wait for, of which the first is done.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/select.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

using namespace std::chrono_literals;

namespace {

// [batch]
// Writes lines in batches: when there are enough, or when the first of them has waited for 5 ms.
class BatchWriter {
 public:
  absl::Status Run(bobbin::Receiver<std::string> lines, bobbin::Event& flush) {
    bobbin::Deadline due = bobbin::Deadline::Never();
    while (lines) {
      BOBBIN_RETURN_IF_ERROR(bobbin::Select(
          bobbin::OnReceive(lines,
                            [&](absl::StatusOr<std::string> line) {
                              if (!line.ok()) {
                                lines = {};  // Closed and empty.
                              } else {
                                if (batch_.empty()) due = bobbin::Deadline::After(5ms);
                                batch_.push_back(*std::move(line));
                              }
                            }),
          bobbin::OnEvent(flush, [] { return absl::CancelledError("writer: told to stop"); }),
          bobbin::OnDeadline(due, [&] { due = bobbin::Deadline::Never(); })));
      const bool is_due = due.is_never() || batch_.size() == 100 || !lines;
      if (is_due) Write();
    }
    return absl::OkStatus();
  }

  int batches() const { return batches_; }

 private:
  void Write() {
    if (batch_.empty()) return;
    fmt::print("{} lines\n", batch_.size());
    batch_.clear();
    ++batches_;
  }

  std::vector<std::string> batch_;
  int batches_ = 0;
};
// [/batch]

// [either]
// Sends a value to whichever of the two has room first.
absl::Status SendToEither(const bobbin::Sender<int>& left, const bobbin::Sender<int>& right,
                          int value) {
  return bobbin::Select(bobbin::OnSend(left, value, [] { fmt::print("left\n"); }),
                        bobbin::OnSend(right, value, [] { fmt::print("right\n"); }));
}
// [/either]

absl::Status Main() {
  auto [sender, lines] = bobbin::MakeChannel<std::string>({.capacity = 8});
  bobbin::Event stop;
  BatchWriter writer;
  bobbin::TaskGroup group;
  group.Spawn([&, lines = std::move(lines)] { return writer.Run(lines, stop); });
  for (int i = 0; i < 250; ++i) {
    BOBBIN_RETURN_IF_ERROR(sender.Send(fmt::format("line {}", i)));
  }
  BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(20ms));
  BOBBIN_RETURN_IF_ERROR(sender.Send("the last one"));
  sender.Close();
  BOBBIN_RETURN_IF_ERROR(group.Wait());
  if (writer.batches() < 4) return absl::InternalError("100, 100, 50, and the last one");

  auto [left, left_out] = bobbin::MakeChannel<int>({.capacity = 1});
  auto [right, right_out] = bobbin::MakeChannel<int>({.capacity = 1});
  for (int i = 0; i < 2; ++i) BOBBIN_RETURN_IF_ERROR(SendToEither(left, right, i));
  BOBBIN_ASSIGN_OR_RETURN(const int a, left_out.Receive());
  BOBBIN_ASSIGN_OR_RETURN(const int b, right_out.Receive());
  return a + b == 1 ? absl::OkStatus() : absl::InternalError("one each");
}

}  // namespace

int main() { return bobbin::Run(Main); }
