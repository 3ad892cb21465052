#include "base/resident_memory.h"

#include <unistd.h>

#include <fstream>

namespace vivace {

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;  // pages
  if (!(statm >> total >> resident)) return 0;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace vivace
