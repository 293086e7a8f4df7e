// SPDX-License-Identifier: Apache-2.0

#include "tests/support/wait_walk.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/os_threads.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {

namespace {

using std::chrono::milliseconds;

// --- The document.

struct Row {
  std::string wait;
  std::string cancel;
  std::string deadline;
  std::string need_not_wait;
};

std::string Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '`')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '`')) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(Trimmed(cell));
  return cells;
}

std::vector<Row> ReadTable(std::string_view section) {
  std::ifstream file(BOBBIN_WAITS_DOCUMENT);
  EXPECT_TRUE(file.is_open()) << BOBBIN_WAITS_DOCUMENT;
  std::vector<Row> rows;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_inside = line.substr(3) == section;
    if (!is_inside || !line.starts_with("| `")) continue;
    const std::vector<std::string> cells = CellsOf(line);
    if (cells.size() != 6) {
      ADD_FAILURE() << "six columns are expected: " << line;
      continue;
    }
    rows.push_back({cells[0], cells[2], cells[3], cells[4]});
  }
  return rows;
}

// --- One thread that waits.

// When a thread is to stop, and how it learns of it.
enum class Stop { kNever, kCancelledBefore, kCancelledLater, kExpiredBefore, kExpiredLater };

bool IsCancel(Stop stop) { return stop == Stop::kCancelledBefore || stop == Stop::kCancelledLater; }
bool IsDeadline(Stop stop) { return stop == Stop::kExpiredBefore || stop == Stop::kExpiredLater; }

std::string_view NameOf(Stop stop) {
  switch (stop) {
    case Stop::kNever:
      return "not stopped";
    case Stop::kCancelledBefore:
      return "cancelled before";
    case Stop::kCancelledLater:
      return "cancelled while it waits";
    case Stop::kExpiredBefore:
      return "deadline passed before";
    case Stop::kExpiredLater:
      return "deadline passes while it waits";
  }
  return "?";
}

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kVirtual:
      return "virtual";
    case Kind::kPlatform:
      return "platform";
    case Kind::kForeign:
      return "foreign";
  }
  return "?";
}

enum class Shield { kNone, kAround };

// A deadline that passes while the thread waits, or a moment before on a slow machine: the answer
// is the same.
constexpr milliseconds kSoon = milliseconds(1);

class WaitingThread {
 public:
  WaitingThread(Runtime& runtime, Kind kind, Stop stop, Shield shield,
                std::function<absl::Status()> wait)
      : kind_(kind), stop_(stop) {
    auto body = [this, shield, wait = std::move(wait)] { return Body(shield, wait); };
    if (kind == Kind::kForeign) {
      os_thread_ = std::thread([this, body] { result_ = body(); });
    } else if (kind == Kind::kPlatform) {
      vthread_ = runtime.Spawn([body] { return RunBlocking(body); });
    } else {
      vthread_ = runtime.Spawn({.placement = Placement::kSpread}, body);
    }
    if (stop == Stop::kCancelledBefore) vthread_.Cancel();
  }
  ~WaitingThread() {
    if (os_thread_.joinable()) os_thread_.join();
  }

  bool IsParked() const {
    const internal::Thread* const thread = thread_.load();
    if (thread == nullptr) return false;
    const internal::Phase phase = thread->state().phase();
    return phase == internal::Phase::kWaiting || phase == internal::Phase::kWaitingShielded ||
           phase == internal::Phase::kWaitingAny || phase == internal::Phase::kWaitingKernel;
  }
  // Has it stop, if that is to happen while it waits, and waits until it must have learned of it.
  void Interrupt() {
    if (stop_ == Stop::kCancelledLater) vthread_.Cancel();
    std::this_thread::sleep_for(2 * kSoon);
  }
  absl::Status Join() {
    if (kind_ != Kind::kForeign) return vthread_.Join();
    os_thread_.join();
    return result_;
  }

 private:
  absl::Status Body(Shield shield, const std::function<absl::Status()>& wait) {
    std::optional<DeadlineScope> deadline;
    if (stop_ == Stop::kExpiredBefore) deadline.emplace(milliseconds(-1));
    if (stop_ == Stop::kExpiredLater) deadline.emplace(kSoon);
    if (stop_ == Stop::kCancelledBefore) AwaitTrue([] { return !CheckStop().ok(); });
    std::optional<CancelShield> around;
    if (shield == Shield::kAround) around.emplace();
    thread_.store(&internal::Current());
    return wait();
  }

  const Kind kind_;
  const Stop stop_;
  VirtualThread vthread_;
  std::thread os_thread_;
  absl::Status result_;
  std::atomic<internal::Thread*> thread_{nullptr};  // Written by the thread itself.
};

// --- The walk.

absl::StatusCode CodeOf(const std::string& answer) {
  if (answer == "CANCELLED") return kCancelled;
  if (answer == "DEADLINE_EXCEEDED") return kDeadlineExceeded;
  EXPECT_EQ(answer, "ignored");
  return kOk;
}

class Walk {
 public:
  Walk(Runtime& runtime, const Row& row, const std::function<WaitStage(Runtime&)>& make)
      : runtime_(runtime), row_(row), make_(make) {}

  void On(Kind kind) {
    const WaitStage stage = make_(runtime_);
    if (!CanWait(stage.waiters, kind)) {
      Discard(stage);
      return;
    }
    is_visible_ = stage.wait_shortly == nullptr &&
                  (kind == Kind::kVirtual || stage.sight_on_os_threads == Sight::kClear);
    const bool begins_always = stage.begins == Begins::kAlways;
    const bool is_slow = stage.pace == Pace::kSlow;
    Discard(stage);

    if (!is_slow) GoesOn(kind, Stop::kNever, Shield::kNone);
    for (const Stop stop : {Stop::kCancelledBefore, Stop::kCancelledLater, Stop::kExpiredBefore,
                            Stop::kExpiredLater}) {
      if (IsCancel(stop) && kind != Kind::kVirtual) continue;
      const testing::ScopedTrace trace(__FILE__, __LINE__,
                                       row_.wait + " on a " + std::string(NameOf(kind)) +
                                           " thread, " + std::string(NameOf(stop)));
      const absl::StatusCode answer = CodeOf(IsDeadline(stop) ? row_.deadline : row_.cancel);
      const bool is_before = stop == Stop::kCancelledBefore || stop == Stop::kExpiredBefore;
      if (answer != kOk) {
        Ends(kind, stop, answer);
      } else if (begins_always || !is_before) {
        GoesOn(kind, stop, Shield::kNone);
      }
      if (!is_slow || stop == Stop::kExpiredLater) GoesOn(kind, stop, Shield::kAround);
      if (is_before) NeedNotWait(kind, stop, IsDeadline(stop) ? kDeadlineExceeded : kCancelled);
    }
  }

 private:
  static bool CanWait(Waiters waiters, Kind kind) {
    switch (waiters) {
      case Waiters::kAll:
        return true;
      case Waiters::kOfRuntime:
        return kind != Kind::kForeign;
      case Waiters::kVirtual:
        return kind == Kind::kVirtual;
      case Waiters::kOsThreads:
        return kind != Kind::kVirtual;
    }
    return false;
  }

  // A stage must be let through before it is struck.
  static void Discard(const WaitStage& stage) {
    if (stage.satisfy != nullptr) stage.satisfy();
  }

  static void AwaitBegun(const WaitStage& stage, const WaitingThread& thread) {
    AwaitTrue(
        [&] { return thread.IsParked() && (stage.has_begun == nullptr || stage.has_begun()); });
  }

  // The wait is neither kept from waiting nor ended, and succeeds once it is let through.
  void GoesOn(Kind kind, Stop stop, Shield shield) {
    const WaitStage stage = make_(runtime_);
    const std::string where = shield == Shield::kAround ? "in a shield" : "";
    WaitingThread thread(runtime_, kind, stop, shield,
                         stage.wait_shortly != nullptr ? stage.wait_shortly : stage.wait);
    // A deadline may pass before such a wait has begun; then its answer says so, and is OK here.
    const bool may_not_begin = stage.begins == Begins::kUnlessStopped &&
                               stop == Stop::kExpiredLater && shield == Shield::kNone;
    if (is_visible_ && !may_not_begin) AwaitBegun(stage, thread);
    if (may_not_begin && stage.has_come != nullptr) AwaitTrue(stage.has_come);
    if (stop != Stop::kNever) thread.Interrupt();
    if (is_visible_ && !may_not_begin) {
      if (stage.rest == Rest::kBroken) AwaitTrue([&] { return thread.IsParked(); });
      if (stage.rest == Rest::kUnbroken) {
        EXPECT_TRUE(thread.IsParked()) << where;
      }
    }
    Discard(stage);
    EXPECT_OK(thread.Join()) << where;
  }

  // The wait ends with `answer`, and nothing was lost: let through, it succeeds.
  void Ends(Kind kind, Stop stop, absl::StatusCode answer) {
    const WaitStage stage = make_(runtime_);
    {
      WaitingThread thread(runtime_, kind, stop, Shield::kNone, stage.wait);
      if (stop == Stop::kCancelledLater) {
        AwaitBegun(stage, thread);
        thread.Interrupt();
      }
      EXPECT_THAT(thread.Join(), StatusIs(answer));
    }
    Discard(stage);
    if (stage.again == Again::kIsNotDone) return;
    WaitingThread again(runtime_, kind, Stop::kNever, Shield::kNone,
                        stage.wait_shortly != nullptr ? stage.wait_shortly : stage.wait);
    EXPECT_OK(again.Join()) << "when it was let through afterwards";
  }

  // There is nothing to wait for, but the thread is to stop.
  void NeedNotWait(Kind kind, Stop stop, absl::StatusCode answer) {
    const WaitStage stage = make_(runtime_);
    Discard(stage);
    if (stage.is_satisfied != nullptr) AwaitTrue(stage.is_satisfied);
    WaitingThread thread(runtime_, kind, stop, Shield::kNone,
                         stage.satisfy == nullptr ? stage.wait_shortly : stage.wait);
    const absl::Status status = thread.Join();
    if (row_.need_not_wait == "either") {
      EXPECT_TRUE(status.ok() || status.code() == answer) << status;
    } else if (row_.need_not_wait == "OK") {
      EXPECT_OK(status) << "although it need not wait";
    } else {
      EXPECT_EQ(row_.need_not_wait, "the same");
      EXPECT_THAT(status, StatusIs(answer)) << "although it need not wait";
    }
  }

  Runtime& runtime_;
  const Row& row_;
  const std::function<WaitStage(Runtime&)>& make_;
  bool is_visible_ = true;  // Whether it can be seen that the thread waits.
};

}  // namespace

void WalkWaits(std::string_view section, const WaitStages& stages, Runtime& runtime) {
  std::set<std::string> listed;
  for (const Row& row : ReadTable(section)) {
    SCOPED_TRACE(row.wait);
    EXPECT_TRUE(listed.insert(row.wait).second) << "listed twice";
    const auto stage = stages.find(row.wait);
    if (stage == stages.end()) {
      ADD_FAILURE() << "listed, and not tested";
      continue;
    }
    Walk walk(runtime, row, stage->second);
    for (const Kind kind : {Kind::kVirtual, Kind::kPlatform, Kind::kForeign}) walk.On(kind);
  }
  for (const auto& [wait, make] : stages) {
    EXPECT_TRUE(listed.contains(wait)) << wait << " is tested, and not listed";
  }
}

}  // namespace bobbin::test
