// Checks of our own invariants: a failure is a bug in Vivace, never a reaction to input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace vivace {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "vivace: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace vivace

#define VIVACE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::vivace::CheckFailed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define VIVACE_DCHECK(condition) static_cast<void>(sizeof(condition))
#else
#define VIVACE_DCHECK(condition) VIVACE_CHECK(condition)
#endif
