// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics: a bank whose tellers wait for each other, and the dump that shows why.

#include <chrono>
#include <csignal>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/dump.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

namespace bank {

struct Account {
  bobbin::Mutex mutex;
  int cents = 0;
};

// Takes both locks, in the order in which the caller names them: that is the mistake.
absl::Status Transfer(Account& from, Account& to,
                      bobbin::WaitGroup& both) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bobbin::MutexLock lock(from.mutex);
  both.Done();
  BOBBIN_RETURN_IF_ERROR(both.Wait());
  BOBBIN_RETURN_IF_ERROR(to.mutex.LockUntil(bobbin::Deadline::After(std::chrono::minutes(1))));
  from.cents -= 1;
  to.cents += 1;
  to.mutex.unlock();
  return absl::OkStatus();
}

absl::Status ServeCustomer(bobbin::Event& customer) { return customer.Wait(); }

}  // namespace bank

namespace {

// [dump]
void PrintWhatEverybodyDoes() {
  fmt::print("{}", bobbin::Dump({.listed_max = 3}));
}
// [/dump]

// [signal]
void DumpOnQuit() {
  bobbin::DumpOnSignal(SIGQUIT);  // Control-backslash on a terminal, or kill -QUIT.
}
// [/signal]

absl::Status Main() {
  DumpOnQuit();
  bank::Account ours;
  bank::Account theirs;
  bobbin::Event customer;
  bobbin::WaitGroup both;
  both.Add(2);
  bobbin::TaskGroup group;
  for (int i = 0; i < 5; ++i) {
    group.Spawn({.name = "counter"}, [&] { return bank::ServeCustomer(customer); });
  }
  group.Spawn({.name = "clerk"}, [&] { return bank::Transfer(ours, theirs, both); });
  group.Spawn({.name = "teller"}, [&] { return bank::Transfer(theirs, ours, both); });
  BOBBIN_RETURN_IF_ERROR(both.Wait());

  std::string seen;
  while (seen.find("wait for each other") == seen.npos) {
    BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(std::chrono::milliseconds(1)));
    seen = bobbin::Dump();
  }
  PrintWhatEverybodyDoes();
  group.Cancel();
  static_cast<void>(group.Wait());
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main, {.carriers = 2}); }
