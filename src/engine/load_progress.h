// How loading a model says how far it is, and asks whether to go on.
#pragma once

#include <cstdint>
#include <functional>

namespace vivace {

// Bytes of weights that are there, and all of them; called now and then on the loading thread.
// False ends the loading soon, with the reason "load_stopped". May be empty.
using LoadProgress = std::function<bool(uint64_t done, uint64_t total)>;

}  // namespace vivace
