#include "base/thread_priority.h"

#include <sys/resource.h>
#include <unistd.h>

namespace vivace {

// On Linux a thread has a value of its own, by its id.
void LowerThreadPriority(int nice) {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
}

}  // namespace vivace
