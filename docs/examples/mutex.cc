// SPDX-License-Identifier: Apache-2.0
//
// Mutex: shared data and its lock, in one or apart, a condition on it, and a bound on how many are
// inside.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/condition.h>
#include <bobbin/core/guarded.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/shared_mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

namespace {

using AccountId = std::string;
using Cents = int64_t;

// [ledger]
class Ledger {
 public:
  void Credit(const AccountId& id, Cents amount) {
    bobbin::MutexLock lock(mutex_);
    balance_[id] += amount;
  }
  Cents BalanceOf(const AccountId& id) {
    bobbin::MutexLock lock(mutex_);
    return balance_[id];
  }

 private:
  bobbin::Mutex mutex_;
  absl::flat_hash_map<AccountId, Cents> balance_ ABSL_GUARDED_BY(mutex_);
};
// [/ledger]

// [guarded]
class Sessions {
 public:
  void Put(const std::string& user, int seat) {
    seats_.Lock()->insert_or_assign(user, seat);  // Held to the end of the statement.
  }
  void Leave(const std::string& user) {
    auto held = seats_.Lock();  // Held to the end of the scope.
    if (const auto it = held->find(user); it != held->end()) held->erase(it);
  }
  absl::Status AwaitEmpty() {
    auto held = seats_.Lock();
    return held.Await([](const auto& seats) { return seats.empty(); });  // Unlocked meanwhile.
  }

 private:
  bobbin::Guarded<absl::flat_hash_map<std::string, int>> seats_;
};
// [/guarded]

// [shared-mutex]
class Routes {
 public:
  std::string Find(const std::string& host) {
    bobbin::SharedLock lock(mutex_);  // Beside other readers.
    const auto it = routes_.find(host);
    return it == routes_.end() ? "" : it->second;
  }
  void Replace(absl::flat_hash_map<std::string, std::string> routes) {
    bobbin::ExclusiveLock lock(mutex_);
    routes_ = std::move(routes);
  }

 private:
  bobbin::SharedMutex mutex_;
  absl::flat_hash_map<std::string, std::string> routes_ ABSL_GUARDED_BY(mutex_);
};
// [/shared-mutex]

// [condition]
class Mailbox {
 public:
  void Put(std::string letter) {
    {
      bobbin::MutexLock lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    arrived_.NotifyOne();
  }
  absl::StatusOr<std::string> Take() {
    bobbin::MutexLock lock(mutex_);
    while (letters_.empty()) {
      BOBBIN_RETURN_IF_ERROR(arrived_.Wait(mutex_));  // Gives the mutex up meanwhile.
    }
    std::string letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

 private:
  bobbin::Mutex mutex_;
  bobbin::Condition arrived_;  // Notified after each change of letters_.
  std::deque<std::string> letters_ ABSL_GUARDED_BY(mutex_);
};
// [/condition]

// [semaphore]
class Press {
 public:
  absl::Status Print() {
    BOBBIN_ASSIGN_OR_RETURN(const bobbin::SemaphorePermit slot, slots_.AcquirePermit());
    return Work();  // The permit goes back at the end of the scope.
  }

 private:
  absl::Status Work();

  bobbin::Semaphore slots_{4};  // So many print at the same time.
};
// [/semaphore]

absl::Status Press::Work() {
  bobbin::Yield();
  return absl::OkStatus();
}

absl::Status Main() {
  Ledger ledger;
  Mailbox mailbox;
  Press press;
  Sessions sessions;
  Routes routes;
  routes.Replace({{"example.org", "127.0.0.1:80"}});
  bobbin::TaskGroup group({.placement = bobbin::Placement::kSpread});
  for (int i = 0; i < 100; ++i) {
    sessions.Put(fmt::format("user {}", i), i);
    group.Spawn([&, i] {
      ledger.Credit("ada", 1);
      sessions.Leave(fmt::format("user {}", i));
      return press.Print();
    });
  }
  BOBBIN_RETURN_IF_ERROR(sessions.AwaitEmpty());
  group.Spawn([&]() -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(const std::string letter, mailbox.Take());
    return letter == "dear all" ? absl::OkStatus() : absl::InternalError(letter);
  });
  mailbox.Put("dear all");
  BOBBIN_RETURN_IF_ERROR(group.Wait());
  if (routes.Find("example.org").empty()) return absl::InternalError("no route");
  fmt::print("balance: {}\n", ledger.BalanceOf("ada"));
  return ledger.BalanceOf("ada") == 100 ? absl::OkStatus() : absl::InternalError("not 100");
}

}  // namespace

int main() { return bobbin::Run(Main); }
