// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/stand_in.h"

#include <utility>

#include "absl/status/statusor.h"

#include <bobbin/core/cancel.h>
#include <bobbin/sched/spawn.h>

namespace bobbin::io::http::internal {

void StandIn::Leave() {
  if (output_.is_empty()) return;
  State watched = State::kWatched;
  if (state_.compare_exchange_strong(watched, State::kLeft)) {
    is_left_ = true;
  } else {
    Spawn();
  }
}

void StandIn::Spawn() {
  if (thread_.is_joinable()) {
    const CancelShield shield;  // It has nothing left to do.
    thread_.Join().IgnoreError();
  }
  state_.store(State::kLeft);
  absl::StatusOr<VirtualThread> spawned = TrySpawn({.name = "http stand-in"}, [this] { Run(); });
  if (spawned.ok()) {
    thread_ = *std::move(spawned);
    is_left_ = true;
  } else {
    state_.store(State::kHome);
    output_.Flush().IgnoreError();  // Those who send more are told.
  }
}

void StandIn::Return() {
  if (!std::exchange(is_left_, false)) return;
  State left = State::kLeft;
  if (state_.compare_exchange_strong(left, State::kWatched)) return;
  thread_.Join().IgnoreError();
  if (thread_.is_joinable()) {
    // This thread is to stop.
    const CancelShield shield;
    thread_.Cancel();
    thread_.Join().IgnoreError();
  }
  state_.store(State::kHome);
}

void StandIn::Run() {
  while (true) {
    State left = State::kLeft;
    if (state_.compare_exchange_strong(left, State::kTaken)) {
      output_.Flush().IgnoreError();  // Those who send more are told.
      return;
    }
    State watched = State::kWatched;
    if (state_.compare_exchange_strong(watched, State::kHome)) return;
  }
}

}  // namespace bobbin::io::http::internal
