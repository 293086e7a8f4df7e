// SPDX-License-Identifier: Apache-2.0
//
// Channel: values that move from one thread to another, at the pace of the slower one.

#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

using namespace std::chrono_literals;

namespace {

struct Photo {
  int width = 0;
};

std::atomic<int> shrunk_count{0};  // Counted by whoever shrinks, read at the end.

void Shrink(Photo& photo) {
  photo.width /= 2;
  shrunk_count.fetch_add(1);
  bobbin::Yield();
}

// [pipeline]
absl::Status ShrinkAll(std::vector<Photo> photos) {
  auto [sender, receiver] = bobbin::MakeChannel<Photo>({.capacity = 16});
  bobbin::TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn([in = receiver] {
      for (Photo& photo : in) Shrink(photo);  // Ends when the channel is closed and empty.
      return bobbin::CheckStop();             // Or when this thread is to stop.
    });
  }
  for (Photo& photo : photos) {
    BOBBIN_RETURN_IF_ERROR(sender.Send(std::move(photo)));  // Waits while it is full.
  }
  sender.Close();
  return group.Wait();
}
// [/pipeline]

// [one-value]
absl::StatusOr<int> Race(absl::StatusOr<int> (*fast)(), absl::StatusOr<int> (*slow)()) {
  auto [sender, receiver] = bobbin::MakeChannel<absl::StatusOr<int>>({.capacity = 2});
  bobbin::TaskGroup group;
  for (const auto ask : {fast, slow}) {
    group.Spawn([out = sender, ask] { return out.Send(ask()); });
  }
  BOBBIN_ASSIGN_OR_RETURN(absl::StatusOr<int> first, receiver.Receive());
  return first;  // The group's destructor cancels the other one and awaits it.
}
// [/one-value]

// [try]
// Drops the value when nobody keeps up, instead of waiting.
bool Offer(const bobbin::Sender<std::string>& log, std::string line) {
  return log.TrySend(std::move(line)).ok();
}
// [/try]

absl::Status Main() {
  BOBBIN_RETURN_IF_ERROR(ShrinkAll(std::vector<Photo>(100, Photo{.width = 640})));
  fmt::print("{} photos\n", shrunk_count.load());
  if (shrunk_count.load() != 100) return absl::InternalError("each photo once");

  BOBBIN_ASSIGN_OR_RETURN(const int first, Race([]() -> absl::StatusOr<int> { return 1; },
                                                []() -> absl::StatusOr<int> {
                                                  BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(1h));
                                                  return 2;
                                                }));
  if (first != 1) return absl::InternalError("the fast one is first");

  auto [log, lines] = bobbin::MakeChannel<std::string>({.capacity = 1});
  const bool is_first_taken = Offer(log, "one");
  const bool is_second_taken = Offer(log, "two");
  return is_first_taken && !is_second_taken ? absl::OkStatus() : absl::InternalError("one fits");
}

}  // namespace

int main() { return bobbin::Run(Main); }
