// SPDX-License-Identifier: Apache-2.0

#include "sched/src/fork_guard.h"

#include <pthread.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

Atomic<uint32_t> ForkGuard::threads_{0};

void ForkGuard::ThreadStarts() noexcept {
  [[maybe_unused]] static const bool is_watching = [] {
    BOBBIN_CHECK(pthread_atfork(nullptr, nullptr, &AfterForkInChild) == 0, "no memory");
    return true;
  }();
  threads_.fetch_add(1);
}

void ForkGuard::ThreadEnded() noexcept { threads_.fetch_sub(1); }

void ForkGuard::AfterForkInChild() noexcept {
  if (threads_.load() == 0) return;
  is_forked_ = true;
  // Nobody is there to describe the virtual threads.
  SetDumpHook(nullptr);
  Thread& self = Current();
  self.ForbidWaits();
  if (Dispatcher* const dispatcher = self.dispatcher()) dispatcher->EndTurn();
}

}  // namespace bobbin::internal
