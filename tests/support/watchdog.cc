// SPDX-License-Identifier: Apache-2.0

#include "tests/support/watchdog.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/support/load.h"
#include "tests/support/sanitizers.h"

namespace bobbin::test {

std::chrono::seconds Watchdog::Limit() {
  return std::chrono::seconds(kUnderSanitizer ? 80 : 20) + TimeForLoad();
}

Watchdog::Watchdog(std::function<std::string()> describe)
    : describe_(std::move(describe)), thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard hold(mutex_);
    is_stopped_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Watchdog::Watch() {
  std::unique_lock hold(mutex_);
  if (stopped_.wait_for(hold, Limit(), [this] { return is_stopped_; })) return;
  std::fprintf(stderr, "the test hangs: not done in %d s\n%s\n", static_cast<int>(Limit().count()),
               describe_().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace bobbin::test
