// SPDX-License-Identifier: Apache-2.0
//
// Groups: threads that end before the scope that started them does.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

using namespace std::chrono_literals;

namespace {

using Quote = int;

struct Venue {
  std::chrono::milliseconds delay;
  absl::StatusOr<Quote> quote;
  absl::StatusOr<Quote> Ask() {
    BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(delay));
    return quote;
  }
};

// [all]
absl::StatusOr<Quote> BestQuote(std::span<Venue> venues) {
  bobbin::DeadlineScope scope(250ms);
  std::vector<Quote> quotes(venues.size());  // Before the group: the children use it to their end.

  bobbin::TaskGroup group;
  for (size_t i = 0; i < venues.size(); ++i) {
    group.Spawn([&, i]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(quotes[i], venues[i].Ask());
      return absl::OkStatus();
    });
  }
  BOBBIN_RETURN_IF_ERROR(group.Wait());  // The first failure cancels the others and comes back.
  return *std::min_element(quotes.begin(), quotes.end());
}
// [/all]

// [each]
absl::Status WarnEach(std::span<const std::string> users, absl::Status (*warn)(std::string_view)) {
  bobbin::TaskGroup group({.on_failure = bobbin::OnFailure::kLog});
  for (const std::string& user : users) {
    group.Spawn({.name = user}, [&user, warn] { return warn(user); });
  }
  return group.Wait();  // OK also if some have failed: those are on standard error, by name.
}
// [/each]

// [results]
absl::StatusOr<Quote> Spread(Venue& left, Venue& right) {
  bobbin::TaskGroup group;
  bobbin::Future<Quote> low = group.Async([&] { return left.Ask(); });
  bobbin::Future<Quote> high = group.Async([&] { return right.Ask(); });
  BOBBIN_RETURN_IF_ERROR(group.Wait());  // A failure of one has cancelled the other.
  return *high.Get() - *low.Get();       // Both are there.
}
// [/results]

// [bounded]
absl::Status AskEach(std::span<Venue> venues, std::vector<bobbin::ChildFailure>& failures) {
  bobbin::TaskGroup group({.on_failure = bobbin::OnFailure::kCollect, .live_max = 2});
  for (Venue& venue : venues) {
    group.Spawn([&venue] { return venue.Ask().status(); });  // Waits while two are asking.
  }
  const absl::Status first = group.Wait();
  failures = group.TakeFailures();
  return first;
}
// [/bounded]

absl::Status Main() {
  std::vector<Venue> venues = {{1ms, 107}, {3ms, 101}, {2ms, 104}};
  BOBBIN_ASSIGN_OR_RETURN(const Quote best, BestQuote(venues));
  fmt::print("best: {}\n", best);
  if (best != 101) return absl::InternalError("101 is the best");

  BOBBIN_ASSIGN_OR_RETURN(const Quote spread, Spread(venues[1], venues[0]));
  if (spread != 6) return absl::InternalError("from 101 to 107");

  venues.push_back({1ms, absl::UnavailableError("venue 3: closed today")});
  std::vector<bobbin::ChildFailure> failures;
  if (AskEach(venues, failures).ok() || failures.size() != 1) {
    return absl::InternalError("one venue is closed");
  }

  venues.push_back({1h, 1});
  const absl::Status failed = BestQuote(venues).status();
  fmt::print("{}\n", failed.ToString());
  if (!absl::IsUnavailable(failed)) return absl::InternalError("one venue is closed");

  const std::vector<std::string> users = {"ada", "grace"};
  return WarnEach(users, [](std::string_view user) {
    if (user == "ada") return absl::NotFoundError("no such mailbox");
    return absl::OkStatus();
  });
}

}  // namespace

int main() { return bobbin::Run(Main); }
