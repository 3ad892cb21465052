#include "bench/steal.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace vivace::bench {
namespace {

// user nice system idle iowait irq softirq steal; guest times that follow are part of user.
constexpr int kFields = 8;
constexpr int kSteal = 7;

std::optional<CpuTicks> ReadCpuTicks() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return ParseCpuTicks(line);
}

}  // namespace

std::optional<CpuTicks> ParseCpuTicks(std::string_view stat) {
  std::istringstream words{std::string(stat.substr(0, stat.find('\n')))};
  std::string name;
  if (!(words >> name) || name != "cpu") return std::nullopt;
  CpuTicks ticks;
  for (int i = 0; i < kFields; ++i) {
    uint64_t value = 0;
    if (!(words >> value)) return std::nullopt;
    ticks.total += value;
    if (i == kSteal) ticks.steal = value;
  }
  return ticks;
}

StealMeter::StealMeter() : start_(ReadCpuTicks()) {}

double StealMeter::Share() const {
  const auto now = ReadCpuTicks();
  if (!start_ || !now || now->total <= start_->total || now->steal < start_->steal) return 0;
  return std::min(1.0, static_cast<double>(now->steal - start_->steal) /
                           static_cast<double>(now->total - start_->total));
}

}  // namespace vivace::bench
