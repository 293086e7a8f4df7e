// SPDX-License-Identifier: Apache-2.0
//
// Waiting: for something that happens once, and until several things are done.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

namespace {

// [event]
class Settings {
 public:
  void Load() {
    text_ = "colour = blue";
    loaded_.Set();  // What was done before it is seen by whoever waited.
  }
  absl::Status Show() {
    BOBBIN_RETURN_IF_ERROR(loaded_.Wait());
    fmt::print("{}\n", text_);
    return absl::OkStatus();
  }

 private:
  std::string text_;
  bobbin::Event loaded_;
};
// [/event]

// Something with callbacks, as C libraries have them.
class Client {
 public:
  void Send(std::function<void()> done) { pending_.push_back(std::move(done)); }
  void Deliver() {
    for (const auto& done : pending_) done();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

// [wait-group]
absl::Status SendAll(Client& client, int count) {
  bobbin::WaitGroup in_flight;
  in_flight.Add(count);
  for (int i = 0; i < count; ++i) client.Send([&] { in_flight.Done(); });
  bobbin::VirtualThread delivery = bobbin::Spawn([&] { client.Deliver(); });
  BOBBIN_RETURN_IF_ERROR(in_flight.Wait());
  return delivery.Join();
}
// [/wait-group]

absl::Status Main() {
  Settings settings;
  bobbin::TaskGroup group;
  for (int i = 0; i < 3; ++i) group.Spawn([&] { return settings.Show(); });
  bobbin::Yield();
  settings.Load();
  BOBBIN_RETURN_IF_ERROR(group.Wait());

  Client client;
  return SendAll(client, 10);
}

}  // namespace

int main() { return bobbin::Run(Main); }
