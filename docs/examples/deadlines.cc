// SPDX-License-Identifier: Apache-2.0
//
// Deadlines: one scope bounds every wait inside it, however deep.

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

using namespace std::chrono_literals;

namespace {

using Answer = std::string;

struct Server {
  bobbin::Sender<std::string> questions;
  bobbin::Receiver<Answer> answers;
};

// [scope]
absl::StatusOr<Answer> Ask(const Server& server, std::string question) {
  bobbin::DeadlineScope scope(250ms);  // For both waits together.
  BOBBIN_RETURN_IF_ERROR(server.questions.Send(std::move(question)));
  return server.answers.Receive();
}
// [/scope]

// [nested]
absl::StatusOr<Answer> AskTwice(const Server& server) {
  bobbin::DeadlineScope scope(50ms);  // Ask has 250 ms of its own; what counts is the earlier one.
  absl::StatusOr<Answer> answer = Ask(server, "first");
  if (answer.ok()) return answer;
  return Ask(server, "second");  // The time is up: this answers DEADLINE_EXCEEDED at once.
}
// [/nested]

// [until]
absl::Status AwaitStart(bobbin::Event& started) {
  const bobbin::Deadline deadline = bobbin::Deadline::After(5s);
  return started.WaitUntil(deadline);  // This one wait only; no scope.
}
// [/until]

absl::Status Main() {
  auto [questions, asked] = bobbin::MakeChannel<std::string>({.capacity = 4});
  auto [answered, answers] = bobbin::MakeChannel<Answer>({.capacity = 4});
  const Server server{questions, answers};

  bobbin::VirtualThread oracle =
      bobbin::Spawn({.name = "oracle"}, [in = asked, out = answered]() -> absl::Status {
        for (const std::string& question : in) {
          if (question == "first") continue;  // Left unanswered.
          BOBBIN_RETURN_IF_ERROR(out.Send(question + ": yes"));
        }
        return absl::OkStatus();
      });

  const bobbin::MonotonicTime begun = bobbin::MonotonicNow();
  const absl::StatusOr<Answer> twice = AskTwice(server);
  const auto waited = bobbin::MonotonicNow() - begun;
  fmt::print("AskTwice: {} after {} ms\n", twice.status().ToString(), waited / 1ms);
  if (!absl::IsDeadlineExceeded(twice.status()) || waited >= 250ms) {
    return absl::InternalError("the outer deadline must count");
  }
  BOBBIN_ASSIGN_OR_RETURN(const Answer answer, Ask(server, "third"));
  fmt::print("{}\n", answer);

  bobbin::Event started;
  started.Set();
  BOBBIN_RETURN_IF_ERROR(AwaitStart(started));
  server.questions.Close();
  return oracle.Join();
}

}  // namespace

int main() { return bobbin::Run(Main); }
