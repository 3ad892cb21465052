// How much memory the system has given this process. Reads /proc: microseconds, any thread.
#pragma once

#include <cstddef>

namespace vivace {

// Bytes resident; 0 if the system does not say.
size_t ResidentBytes();

}  // namespace vivace
