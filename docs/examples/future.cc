// SPDX-License-Identifier: Apache-2.0
//
// Future: one result, from a callback to whoever waits for it.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/future.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

using namespace std::chrono_literals;

namespace {

// Something with callbacks, as C libraries have them.
class Client {
 public:
  void Ask(std::string name, std::function<void(std::string)> done) {
    pending_.push_back([name = std::move(name), done = std::move(done)] { done(name + "!"); });
  }
  void Deliver() {
    for (const auto& answer : std::exchange(pending_, {})) answer();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

// [callback]
bobbin::Future<std::string> Ask(Client& client, std::string name) {
  auto [promise, answer] = bobbin::MakePromise<std::string>();
  // A std::function wants to be copied; a promise has one owner.
  auto shared = std::make_shared<bobbin::Promise<std::string>>(std::move(promise));
  client.Ask(std::move(name), [shared](std::string text) { shared->Set(std::move(text)); });
  return std::move(answer);
}
// [/callback]

// [first]
absl::StatusOr<std::string> FirstOf(std::vector<bobbin::Future<std::string>> answers) {
  bobbin::DeadlineScope scope(2s);
  BOBBIN_ASSIGN_OR_RETURN(const size_t first, bobbin::WaitAny(answers));
  return answers[first].Get();  // The others are dropped; their promises may notice.
}
// [/first]

// [then]
bobbin::Future<size_t> LengthOf(bobbin::Future<std::string> answer) {
  return std::move(answer).Then([](const std::string& text) { return text.size(); });
}
// [/then]

absl::Status Main() {
  Client client;
  std::vector<bobbin::Future<std::string>> answers;
  for (const char* name : {"ada", "grace"}) answers.push_back(Ask(client, name));
  bobbin::Future<size_t> length = LengthOf(Ask(client, "barbara"));
  bobbin::VirtualThread delivery = bobbin::Spawn([&] { client.Deliver(); });

  BOBBIN_ASSIGN_OR_RETURN(const std::string first, FirstOf(std::move(answers)));
  BOBBIN_ASSIGN_OR_RETURN(const size_t letters, length.Get());
  fmt::print("{} {}\n", first, letters);
  BOBBIN_RETURN_IF_ERROR(delivery.Join());
  return first == "ada!" && letters == 8 ? absl::OkStatus() : absl::InternalError("ada! 8");
}

}  // namespace

int main() { return bobbin::Run(Main); }
