// SPDX-License-Identifier: Apache-2.0

#include "io/src/poller_choice.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>

#include "io/src/epoll_poller.h"
#include "io/src/ring_poller.h"

namespace bobbin::io::internal {

namespace {

constexpr const char* kVariable = "BOBBIN_IO";

// The poller of a runtime that is not to start: it says why.
class RefusedPoller final : public Poller {
 public:
  explicit RefusedPoller(absl::Status why) : why_(std::move(why)) {}

  absl::Status Start() override { return why_; }
  void Poll() noexcept override {}
  void PollUntil(Deadline) noexcept override {}
  void Wake() noexcept override {}
  std::string_view name() const noexcept override { return "none"; }

 private:
  const absl::Status why_;
};

void ReportOnce(std::string_view reason) {
  static bobbin::internal::Atomic<bool> is_reported{false};  // Set by whoever reports.
  if (is_reported.exchange(true)) return;
  bobbin::internal::Tell({.text = fmt::format("I/O by epoll, which is slower: {}", reason),
                          .fields = {{"reason", reason}}});
}

}  // namespace

absl::StatusOr<PollerChoice::Kind> PollerChoice::Choose() {
  const char* const value = std::getenv(kVariable);
  const std::string_view wish = value == nullptr || *value == '\0' ? "auto" : value;
  if (wish == "uring") return Kind::kRing;
  if (wish == "epoll") {
    reason_ = fmt::format("{} is epoll", kVariable);
    return Kind::kEpoll;
  }
  if (wish != "auto") {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("{} is \"{}\": must be auto, uring or epoll", kVariable, wish));
  }
  const absl::Status ring = ProbeUring(options_);
  if (ring.ok()) return Kind::kRing;
  reason_ = MessageOf(ring);
  ReportOnce(reason_);
  return Kind::kEpoll;
}

std::unique_ptr<Poller> PollerChoice::MakePoller() {
  if (!kind_.has_value()) kind_ = Choose();
  if (!kind_->ok()) return std::make_unique<RefusedPoller>(kind_->status());
  if (**kind_ == Kind::kRing) return std::make_unique<RingPoller>(options_);
  return std::make_unique<EpollPoller>(reason_);
}

}  // namespace bobbin::io::internal
