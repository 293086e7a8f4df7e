// SPDX-License-Identifier: Apache-2.0
//
// StandIn: sends the answers that a session has gathered, if the handler of its next request waits.
//
// Answers to requests that came together are sent together. But whether a handler waits is known
// when it does, and then the session can do nothing any more. So before such a handler a virtual
// thread is spawned, on the same carrier: it begins when the session's waits, and sends. If that
// does not wait, it takes its output back, and goes on with the next request; the other one begins
// when all of them are answered, finds nothing to do, and ends.
//
//   kHome     the output is the session's, and nobody stands in
//   kWatched  the output is the session's; the stand-in has not begun, or is about to end
//   kLeft     the output is for the one who takes it first
//   kTaken    the stand-in sends it
//
//   kHome -> kLeft      Leave, which spawns
//   kWatched -> kLeft   Leave
//   kLeft -> kWatched   Return
//   kLeft -> kTaken     the stand-in, which sends, and ends
//   kTaken -> kHome     Return, behind the stand-in's end
//   kWatched -> kHome   the stand-in, which ends
//
// Why nothing that was left stays unsent. The stand-in's way out is an exchange of kWatched: if
// Leave is first, it fails, and the stand-in finds kLeft; if it is first, Leave's fails, and Leave
// spawns. Why the output is one thread's at a time: it is changed by the session in kHome and
// kWatched and by the stand-in in kTaken, and all of these are entered by an exchange, or by the
// join of the other one.
//
//   Called from   the session's thread.
//   Suspends      Leave, if there can be no more threads; Return, while the stand-in sends.
//   Cancellation  Return ends the stand-in, and waits for it. The output then tells that it failed.
//   Cost          a spawn for all requests that came together, and two exchanges for each.

#ifndef BOBBIN_IO_SRC_HTTP_STAND_IN_H_
#define BOBBIN_IO_SRC_HTTP_STAND_IN_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/vthread.h>

#include "io/src/http/output.h"

namespace bobbin::io::http::internal {

class StandIn {
 public:
  explicit StandIn(Output& output) : output_(output) {}
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  // REQUIRES: the output is not left.
  ~StandIn() = default;

  // What is gathered is sent when the calling thread waits. The output is not its own until Return.
  void Leave();
  // The output is the caller's again, if it was left.
  void Return();

 private:
  enum class State : uint8_t { kHome, kWatched, kLeft, kTaken };

  void Spawn();
  void Run();

  Output& output_;
  bool is_left_ = false;  // The session's.
  // Written by both; see above.
  bobbin::internal::Atomic<State> state_{State::kHome};
  VirtualThread thread_;  // Last: it uses the others.
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_STAND_IN_H_
