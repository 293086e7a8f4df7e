// SPDX-License-Identifier: Apache-2.0
//
// Lifecycle: a program that ends in order when it is told to.

#include <unistd.h>

#include <csignal>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/event.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/runtime.h>

namespace {

// Something that serves until it is drained.
class Shop {
 public:
  absl::Status Drain() {
    fmt::print("the shop closes\n");
    is_closed_.Set();
    return absl::OkStatus();
  }
  absl::Status AwaitEnd() {
    kill(getpid(), SIGTERM);  // As the one who operates it would.
    return is_closed_.Wait();
  }

 private:
  bobbin::Event is_closed_;
};

// [hook]
absl::Status Serve(Shop& shop) {
  bobbin::Lifecycle& life = bobbin::CurrentLifecycle();
  life.StopOnSignals();  // SIGTERM and SIGINT.
  const bobbin::StopHook drain = life.OnStop({.phase = bobbin::StopPhase::kServers, .name = "shop"},
                                             [&shop] { return shop.Drain(); });
  return shop.AwaitEnd();
}
// [/hook]

absl::Status Main() {
  Shop shop;
  return Serve(shop);
}

}  // namespace

int main() { return bobbin::Run(Main); }
