#include "base/cgroup.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace vivace {
namespace {

using Quota = std::optional<double>;

Quota Least(Quota a, Quota b) {
  if (!a) return b;
  if (!b) return a;
  return *a < *b ? a : b;
}

Quota Ratio(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

// v2: "<quota|max> <period>" in one file.
Quota ReadV2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period)) return std::nullopt;  // "max" does not parse: no limit
  return Ratio(quota, period);
}

// v1: two files, quota -1 means no limit.
Quota ReadV1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  return Ratio(quota, period);
}

// The least quota of `path` and its parents under `root`. Inside a container the path may not exist
// below the mount; its last parent, the mount itself, does and is the container's own group.
template <typename Read>
Quota WalkUp(const std::string& root, std::string path, Read read) {
  Quota least;
  while (!path.empty() && path != "/") {
    least = Least(least, read(root + path));
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return Least(least, read(root));
}

bool HasCpuController(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

std::optional<double> CgroupCpuQuota(std::string_view membership, const std::string& mount) {
  Quota least;
  std::istringstream lines{std::string(membership)};
  // Each line is "id:controllers:path"; v2 has id 0 and no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = Least(least, WalkUp(mount, path, ReadV2));
    } else if (HasCpuController(controllers)) {
      least = Least(least, WalkUp(mount + "/" + controllers, path, ReadV1));
      least = Least(least, WalkUp(mount + "/cpu", path, ReadV1));
    }
  }
  return least;
}

}  // namespace vivace
