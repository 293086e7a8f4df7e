// SPDX-License-Identifier: Apache-2.0

#include "sched/src/unheard_end.h"

namespace bobbin::internal {

namespace {

class Nobody final : public TaskOwner {
 public:
  void TaskEnded(Task&, Outcome) noexcept override {}
};

constinit Nobody nobody;

}  // namespace

TaskOwner& UnheardEnd() noexcept { return nobody; }

}  // namespace bobbin::internal
