// SPDX-License-Identifier: Apache-2.0
//
// Waiting: for something that happens once, until several things are done, for whoever is first,
// and for each other.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/barrier.h>
#include <bobbin/core/event.h>
#include <bobbin/core/once.h>
#include <bobbin/core/status.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

namespace {

// [event]
class Settings {
 public:
  void Load() {
    text_ = "colour = blue";
    loaded_.Set();  // What was done before it is seen by whoever waited.
  }
  absl::Status Show() {
    BOBBIN_RETURN_IF_ERROR(loaded_.Wait());
    fmt::print("{}\n", text_);
    return absl::OkStatus();
  }

 private:
  std::string text_;
  bobbin::Event loaded_;
};
// [/event]

// Something with callbacks, as C libraries have them.
class Client {
 public:
  void Send(std::function<void()> done) { pending_.push_back(std::move(done)); }
  void Deliver() {
    for (const auto& done : pending_) done();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

// [wait-group]
absl::Status SendAll(Client& client, int count) {
  bobbin::WaitGroup in_flight;
  in_flight.Add(count);
  for (int i = 0; i < count; ++i) client.Send([&] { in_flight.Done(); });
  bobbin::VirtualThread delivery = bobbin::Spawn([&] { client.Deliver(); });
  BOBBIN_RETURN_IF_ERROR(in_flight.Wait());
  return delivery.Join();
}
// [/wait-group]

// [once]
class Dictionary {
 public:
  absl::StatusOr<std::string> Translate(const std::string& word) {
    // The first one loads; those who come meanwhile wait. After a failure the next one tries.
    BOBBIN_RETURN_IF_ERROR(loaded_.Call([this] { return Load(); }));
    const auto found = words_.find(word);
    return found == words_.end() ? word : found->second;
  }

 private:
  absl::Status Load();

  bobbin::Once loaded_;
  std::map<std::string, std::string> words_;
};
// [/once]

absl::Status Dictionary::Load() {
  words_ = {{"thread", "Faden"}};
  return absl::OkStatus();
}

constexpr size_t kParts = 3;

// Each value becomes the mean of its neighbours and itself; the ends stay.
void SmoothPart(const std::vector<double>& from, std::vector<double>& to, size_t part) {
  for (size_t i = part; i < from.size(); i += kParts) {
    const bool is_end = i == 0 || i + 1 == from.size();
    to[i] = is_end ? from[i] : (from[i - 1] + from[i] + from[i + 1]) / 3;
  }
}

// [barrier]
absl::Status Smooth(std::vector<double>& values, int steps) {
  std::vector<double> next(values.size());
  bobbin::Barrier barrier(kParts, [&]() noexcept { values.swap(next); });
  bobbin::TaskGroup group;
  for (size_t part = 0; part < kParts; ++part) {
    group.Spawn([&, part]() -> absl::Status {
      for (int step = 0; step < steps; ++step) {
        SmoothPart(values, next, part);
        BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());  // The last one swaps, then all go on.
      }
      return absl::OkStatus();
    });
  }
  return group.Wait();
}
// [/barrier]

absl::Status Main() {
  Settings settings;
  bobbin::TaskGroup group;
  for (int i = 0; i < 3; ++i) group.Spawn([&] { return settings.Show(); });
  bobbin::Yield();
  settings.Load();
  BOBBIN_RETURN_IF_ERROR(group.Wait());

  Client client;
  BOBBIN_RETURN_IF_ERROR(SendAll(client, 10));

  Dictionary dictionary;
  for (int i = 0; i < 2; ++i) {
    BOBBIN_ASSIGN_OR_RETURN(const std::string word, dictionary.Translate("thread"));
    if (word != "Faden") return absl::InternalError(word);
  }

  std::vector<double> values = {0, 0, 9, 0, 0};
  BOBBIN_RETURN_IF_ERROR(Smooth(values, 1));
  return values[1] == 3 && values[3] == 3 ? absl::OkStatus() : absl::InternalError("not smooth");
}

}  // namespace

int main() { return bobbin::Run(Main); }
