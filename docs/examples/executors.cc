// SPDX-License-Identifier: Apache-2.0
//
// Executors: tasks that outlive their caller, on threads that suit them.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/future.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/tasks.h>

using namespace std::chrono_literals;

namespace {

uint64_t Checksum(const std::string& text) {
  uint64_t sum = 0;
  for (const char letter : text) sum = sum * 31 + static_cast<unsigned char>(letter);
  return sum;
}

// [async]
absl::StatusOr<bool> AreEqual(std::string left, std::string right) {
  // Both get their text, and may outlive this function.
  bobbin::Future<uint64_t> a = bobbin::Async("hashing", Checksum, std::move(left));
  bobbin::Future<uint64_t> b = bobbin::Async("hashing", Checksum, std::move(right));
  bobbin::DeadlineScope scope(2s);
  BOBBIN_ASSIGN_OR_RETURN(const uint64_t left_sum, a.Get());  // The carrier runs others meanwhile.
  BOBBIN_ASSIGN_OR_RETURN(const uint64_t right_sum, b.Get());
  return left_sum == right_sum;
}
// [/async]

absl::Status Send(const std::string& text) {
  return text.empty() ? absl::UnavailableError("the mail server is busy") : absl::OkStatus();
}

// [submit]
absl::Status Receipt(const std::string& order) {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::Executor* const mail, bobbin::CurrentExecutors().Find("mail"));
  // Nobody waits for it. If it fails for good, that is logged and counted.
  return mail->Submit({.name = "receipt", .retry = {.attempts_max = 5, .backoff = 200ms}},
                      [order] { return Send(order); });
}
// [/submit]

// [held]
class Account {
 public:
  // Runs on another thread; of those of one account, one at a time.
  bobbin::Future<void> Deposit(int64_t cents) {
    return bobbin::Async("default-virtual", {.held = &mutex_}, [this, cents] { cents_ += cents; });
  }
  int64_t cents() {
    const bobbin::MutexLock lock(mutex_);
    return cents_;
  }

 private:
  bobbin::Mutex mutex_;
  int64_t cents_ = 0;  // Guarded by mutex_.
};
// [/held]

// [options]
bobbin::RuntimeOptions Options() {
  bobbin::RuntimeOptions options;
  options.executors.named = {
      {"hashing", {.threads = 2, .queue_max = 1000}},
      {"mail", {.kind = bobbin::ThreadKind::kVirtual, .concurrency = 20}},
  };
  options.executors.on_uncaught_failure = [](const bobbin::TaskFailure& failure) {
    fmt::print("{}: {}\n", failure.task, failure.status.ToString());
  };
  return options;
}
// [/options]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(const bool are_equal, AreEqual("thread", "thread"));
  BOBBIN_RETURN_IF_ERROR(Receipt("order 7"));
  Account account;
  std::vector<bobbin::Future<void>> deposits;
  for (int i = 0; i < 10; ++i) deposits.push_back(account.Deposit(5));
  BOBBIN_RETURN_IF_ERROR(bobbin::WaitAll(deposits));
  fmt::print("{} {}\n", are_equal, account.cents());
  return are_equal && account.cents() == 50 ? absl::OkStatus() : absl::InternalError("true 50");
}

}  // namespace

int main() { return bobbin::Run(Main, Options()); }
