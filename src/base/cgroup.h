// The CPU quota that cgroups (v1 or v2) put on this process, as containers set it.
// Reads a few small files; meant for start-up. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vivace {

// Limits are the least over the process's cgroup and all the parents it can see; nothing if there
// is none. `membership` is the text of /proc/self/cgroup, `mount` is where the cgroup file systems
// live, usually /sys/fs/cgroup.

// CPUs' worth of time the process may use.
std::optional<double> CgroupCpuQuota(std::string_view membership, const std::string& mount);

// Bytes the process may still take: limit less use.
std::optional<double> CgroupMemoryLeft(std::string_view membership, const std::string& mount);

}  // namespace vivace
