// SPDX-License-Identifier: Apache-2.0

#include "sched/src/usable_cpus.h"

#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

#include <bobbin/sched/runtime.h>

namespace bobbin::internal {
namespace {

// A made-up root with the files of a cgroup hierarchy.
class UsableCpusTest : public testing::Test {
 protected:
  UsableCpusTest() : root_(UniqueFolder()) {}
  ~UsableCpusTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int Quota() { return CgroupCpuQuota(root_); }

  const std::string root_;

 private:
  // Other cases of this file may run at the same time.
  static std::string UniqueFolder() {
    std::string name = testing::TempDir() + "usable_cpus_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
};

TEST_F(UsableCpusTest, WithoutACgroupThereIsNoQuota) { EXPECT_EQ(Quota(), 0); }

TEST_F(UsableCpusTest, AQuotaIsRoundedUp) {
  Write("/proc/self/cgroup", "0::/app\n");
  Write("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 2);
  Write("/sys/fs/cgroup/app/cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota(), 1);
  Write("/sys/fs/cgroup/app/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota(), 4);
}

TEST_F(UsableCpusTest, MaxMeansNoQuota) {
  Write("/proc/self/cgroup", "0::/app\n");
  Write("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
}

TEST_F(UsableCpusTest, TheTightestOfTheNestedGroupsCounts) {
  Write("/proc/self/cgroup", "0::/pod/app\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
  Write("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 2);
  Write("/sys/fs/cgroup/pod/app/cpu.max", "100000 100000\n");
  EXPECT_EQ(Quota(), 1);
}

TEST_F(UsableCpusTest, TheFirstVersionsFilesAreUnderstood) {
  Write("/proc/self/cgroup", "5:memory:/app\n4:cpu,cpuacct:/app\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3);
  Write("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Quota(), 0);
}

TEST_F(UsableCpusTest, NonsenseIsNoQuota) {
  Write("/proc/self/cgroup", "no colons here\n0::/app\n");
  Write("/sys/fs/cgroup/app/cpu.max", "lots of it\n");
  EXPECT_EQ(Quota(), 0);
}

TEST(UsableCpusRuleTest, TheSmallerOfAffinityAndQuotaAndAtLeastOne) {
  EXPECT_EQ(UsableCpus(64, 0), 64);
  EXPECT_EQ(UsableCpus(64, 2), 2);
  EXPECT_EQ(UsableCpus(2, 8), 2);
  EXPECT_EQ(UsableCpus(0, 0), 1);
}

TEST(UsableCpusRuleTest, ARuntimeFollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(Runtime().carriers(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace bobbin::internal
