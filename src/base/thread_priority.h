// How readily a thread of ours steps aside for others.
#pragma once

namespace vivace {

// Lowers the calling thread's own priority, and no other's: 10 leaves it about a tenth of a
// processor that others want, 19 next to nothing. A request; failing is fine.
void LowerThreadPriority(int nice);

}  // namespace vivace
