// SPDX-License-Identifier: Apache-2.0
//
// UsableCpus: how many CPUs a process may keep busy - its affinity mask, and its cgroup's quota.
//
// A process in a container sees all CPUs of its host and may use a fraction; with a carrier for
// each, the kernel would stop them all for most of every period.
//
//   Called from   any thread that may read files.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_USABLE_CPUS_H_
#define BOBBIN_SCHED_SRC_USABLE_CPUS_H_

#include <string>

namespace bobbin::internal {

// The quota in CPUs, rounded up, of the cgroup this process is in and of those above it; 0: none.
// Reads below `root`, which is empty but in tests.
int CgroupCpuQuota(const std::string& root);

// The smaller of the two, at least one; a quota of 0 counts as none.
int UsableCpus(int affinity_count, int quota);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_USABLE_CPUS_H_
