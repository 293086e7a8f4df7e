// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <bobbin/sched/statistics.h>

namespace bobbin {

namespace {
double Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void AddPool(std::string_view name, const PlatformPoolStatistics& pool, std::string& text) {
  if (pool.threads_peak == 0) return;
  text += fmt::format(
      "{}: {} threads, {} active, {} queued, {} completed, {} rejected\n"
      "  queued for {:.3f} ms in all, {:.3f} ms at most; ran for {:.3f} ms in all, {:.3f} ms at "
      "most\n",
      name, pool.threads, pool.active, pool.queued, pool.completed, pool.rejected,
      Milliseconds(pool.wait_total), Milliseconds(pool.wait_max), Milliseconds(pool.run_total),
      Milliseconds(pool.run_max));
}
}  // namespace

std::string RuntimeStatistics::Text() const {
  std::string text = fmt::format(
      "virtual threads: {} live = {} fresh + {} ready + {} running + {} parked\n"
      "  ever: {} spawned, {} started, {} ended, {} stolen, {} migrated, {} limited\n"
      "  spawners that wait for the limit: {}\n"
      "  ever: {} switches, {} parks, {} wakes ({} from elsewhere), {} yields\n"
      "carriers: {} turns, {} sleeps, {} of them ended by another thread\n"
      "  held for too long: {} times by a computation, {} times by a call that blocks; {} are now\n"
      "deadlocks: {}\n"
      "waiting: {} timers, {} operations in the kernel\n"
      "stacks: {} of {} KiB, {} of other sizes; {} threads wait for one\n",
      live(), fresh, ready, running, parked, spawned, started, ended, stolen, migrated, limited,
      waiting_for_limit, switches, parks, wakes, remote_wakes, yields, turns, sleeps, carrier_wakes,
      computing_holds, blocking_holds, held_carriers, deadlocks, timers, in_flight,
      stacks - sized_stacks, stack_bytes >> 10, sized_stacks, without_stack);
  if (poller != PollerStatistics{}) {
    text += fmt::format(
        "scarce: {} early submits, {} operations deferred, {} overflows, {} pauses without memory, "
        "{} pauses of accepts, {} small queues, {} copied sends\n",
        poller.early_submits, poller.deferred, poller.overflows, poller.memory_pauses,
        poller.accept_pauses, poller.small_queues, poller.copied_sends);
  }
  AddPool("blocking", blocking, text);
  AddPool("sync", syncing, text);
  return text;
}

}  // namespace bobbin
