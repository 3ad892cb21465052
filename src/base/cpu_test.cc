#include "base/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/cgroup.h"

namespace vivace {
namespace {

namespace fs = std::filesystem;

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("cgroup_") + info->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<double> Quota(std::string_view membership) {
    return CgroupCpuQuota(membership, root_.string());
  }

  fs::path root_;
};

TEST_F(Cgroup, NoFilesMeansNoLimit) {
  EXPECT_EQ(Quota("0::/a/b\n"), std::nullopt);
  EXPECT_EQ(Quota(""), std::nullopt);
  EXPECT_EQ(Quota("nonsense\n:\n"), std::nullopt);
}

TEST_F(Cgroup, V2TakesTheLeastOnTheWayUp) {
  Write("a/b/cpu.max", "300000 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 3.0);
  Write("a/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 1.5);
  Write("a/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 3.0);
  Write("cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 0.5);
  EXPECT_EQ(Quota("0::/elsewhere\n"), 0.5) << "a container sees its own group as the root";
}

TEST_F(Cgroup, V1ReadsQuotaAndPeriod) {
  const char* membership = "5:memory:/x\n4:cpu,cpuacct:/x\n3:cpuset:/x\n";
  Write("cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  Write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(membership), std::nullopt);
  Write("cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(Quota(membership), 2.5);
  Write("cpuset/x/cpu.cfs_quota_us", "100\n");
  EXPECT_EQ(Quota(membership), 2.5) << "cpuset is not the cpu controller";
}

TEST_F(Cgroup, MemoryLeftIsTheLeastOnTheWayUp) {
  const auto left = [&](std::string_view membership) {
    return CgroupMemoryLeft(membership, root_.string());
  };
  EXPECT_EQ(left("0::/a/b\n"), std::nullopt);
  Write("a/b/memory.max", "max\n");
  Write("a/b/memory.current", "100\n");
  EXPECT_EQ(left("0::/a/b\n"), std::nullopt);
  Write("a/memory.max", "1000\n");
  Write("a/memory.current", "400\n");
  EXPECT_EQ(left("0::/a/b\n"), 600.0);
  Write("a/b/memory.max", "50\n");
  EXPECT_EQ(left("0::/a/b\n"), 0.0) << "more in use than allowed";
  Write("memory/x/memory.limit_in_bytes", "700\n");
  Write("memory/x/memory.usage_in_bytes", "200\n");
  EXPECT_EQ(left("5:memory:/x\n"), 500.0);
}

TEST_F(Cgroup, BrokenFilesAreNoLimit) {
  Write("a/cpu.max", "");
  EXPECT_EQ(Quota("0::/a\n"), std::nullopt);
  Write("a/cpu.max", "100000 0\n");
  EXPECT_EQ(Quota("0::/a\n"), std::nullopt);
  Write("a/cpu.max", "-5 100000\n");
  EXPECT_EQ(Quota("0::/a\n"), std::nullopt);
}

TEST(Isa, NamesRoundTrip) {
  for (Isa isa : kIsas) EXPECT_EQ(ParseIsa(Name(isa)), isa);
  EXPECT_EQ(ParseIsa("auto"), std::nullopt);
  EXPECT_EQ(ParseIsa("AVX2"), std::nullopt);
}

TEST(Isa, TiersNest) {
  EXPECT_TRUE(Supported(Isa::kReference));
  EXPECT_TRUE(Supported(BestIsa()));
  EXPECT_TRUE(!Supported(Isa::kAvxVnni) || Supported(Isa::kAvx2));
  EXPECT_TRUE(!Supported(Isa::kAvx512) || Supported(Isa::kAvx2));
  EXPECT_TRUE(!Supported(Isa::kAvx512Bf16) || Supported(Isa::kAvx512));
  for (Isa isa : kIsas) {
    EXPECT_TRUE(isa <= BestIsa() || !Supported(isa) || isa == Isa::kAvx512Bf16) << Name(isa);
  }
}

// What the kernel read from the same registers, written down by other people.
TEST(Isa, AgreesWithTheKernel) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  if (line.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto all = [&](std::initializer_list<const char*> flags) {
    return std::all_of(flags.begin(), flags.end(), [&](const char* flag) {
      return (line + " ").find(" " + std::string(flag) + " ") != std::string::npos;
    });
  };
  const bool avx2 = all({"avx2", "fma", "f16c"});
  EXPECT_EQ(Supported(Isa::kAvx2), avx2);
  EXPECT_TRUE(Supported(Isa::kAvxVnni) || !all({"avx_vnni"})) << "older kernels have no such flag";
  EXPECT_EQ(Supported(Isa::kAvx512),
            avx2 && all({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"}));
  EXPECT_EQ(Supported(Isa::kAvx512Bf16), Supported(Isa::kAvx512) && all({"avx512_bf16"}));
}

TEST(UsableCpus, FollowsTheAffinityOfTheThread) {
  int pinned = 0;
  std::thread thread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    pinned = UsableCpus();
  });
  thread.join();
  EXPECT_EQ(pinned, 1);
  EXPECT_GE(UsableCpus(), 1);
}

}  // namespace
}  // namespace vivace
