// The CPU quota that cgroups (v1 or v2) put on this process, as containers set it.
// Reads a few small files; meant for start-up. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vivace {

// CPUs' worth of time the process may use, the least over its cgroup and all the parents it can
// see; nothing if there is no limit. `membership` is the text of /proc/self/cgroup, `mount` is
// where the cgroup file systems live, usually /sys/fs/cgroup.
std::optional<double> CgroupCpuQuota(std::string_view membership, const std::string& mount);

}  // namespace vivace
