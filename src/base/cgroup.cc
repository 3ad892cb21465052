#include "base/cgroup.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace vivace {
namespace {

using Limit = std::optional<double>;

Limit Least(Limit a, Limit b) {
  if (!a) return b;
  if (!b) return a;
  return *a < *b ? a : b;
}

Limit Ratio(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

// v2: "<quota|max> <period>" in one file.
Limit ReadCpuV2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period)) return std::nullopt;  // "max" does not parse: no limit
  return Ratio(quota, period);
}

// v1: two files, quota -1 means no limit.
Limit ReadCpuV1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  return Ratio(quota, period);
}

// Two files of bytes: the limit, and what is in use. "max" does not parse and means no limit.
Limit ReadMemory(const std::string& limit_path, const std::string& used_path) {
  std::ifstream limit_file(limit_path), used_file(used_path);
  double limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return std::nullopt;
  return limit > used ? limit - used : 0;
}

Limit ReadMemoryV2(const std::string& directory) {
  return ReadMemory(directory + "/memory.max", directory + "/memory.current");
}

Limit ReadMemoryV1(const std::string& directory) {
  return ReadMemory(directory + "/memory.limit_in_bytes", directory + "/memory.usage_in_bytes");
}

// The least limit of `path` and its parents under `root`. Inside a container the path may not exist
// below the mount; its last parent, the mount itself, does and is the container's own group.
using Read = Limit (*)(const std::string& directory);
Limit WalkUp(const std::string& root, std::string path, Read read) {
  Limit least;
  while (!path.empty() && path != "/") {
    least = Least(least, read(root + path));
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return Least(least, read(root));
}

bool HasController(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

Limit LeastOf(std::string_view membership, const std::string& mount, const std::string& controller,
              Read read_v2, Read read_v1) {
  Limit least;
  std::istringstream lines{std::string(membership)};
  // Each line is "id:controllers:path"; v2 has id 0 and no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = Least(least, WalkUp(mount, path, read_v2));
    } else if (HasController(controllers, controller)) {
      least = Least(least, WalkUp(mount + "/" + controllers, path, read_v1));
      least = Least(least, WalkUp(mount + "/" + controller, path, read_v1));
    }
  }
  return least;
}

}  // namespace

std::optional<double> CgroupCpuQuota(std::string_view membership, const std::string& mount) {
  return LeastOf(membership, mount, "cpu", ReadCpuV2, ReadCpuV1);
}

std::optional<double> CgroupMemoryLeft(std::string_view membership, const std::string& mount) {
  return LeastOf(membership, mount, "memory", ReadMemoryV2, ReadMemoryV1);
}

}  // namespace vivace
