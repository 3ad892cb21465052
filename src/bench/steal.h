// Time the host took away: a virtual machine's measurements are worth nothing while it is taken.
// Cost: one small file. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vivace::bench {

struct CpuTicks {
  uint64_t total = 0;
  uint64_t steal = 0;
};

// The first line of /proc/stat; nothing if it is not one.
std::optional<CpuTicks> ParseCpuTicks(std::string_view stat);

// Share of the processors' time stolen since construction, 0 to 1; 0 where the system does not say.
class StealMeter {
 public:
  StealMeter();
  double Share() const;

 private:
  std::optional<CpuTicks> start_;
};

}  // namespace vivace::bench
