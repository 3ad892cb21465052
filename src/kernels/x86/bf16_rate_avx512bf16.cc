#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/x86/bf16_rate.h"

namespace vivace::kernels::x86 {
namespace {

constexpr int kSteps = 1'000;  // of 12 instructions: some 3 us
constexpr int kTrials = 32;

// Twelve independent chains cover the latency. In assembly, because a compiler leaves out a chain
// whose end nobody reads.
#define VIVACE_CHAINS(op)                                                                       \
  for (int i = 0; i < kSteps; ++i) {                                                            \
    __asm__ volatile(op " %%zmm12, %%zmm13, %%zmm0\n\t" op " %%zmm12, %%zmm13, %%zmm1\n\t" op   \
                        " %%zmm12, %%zmm13, %%zmm2\n\t" op " %%zmm12, %%zmm13, %%zmm3\n\t" op   \
                        " %%zmm12, %%zmm13, %%zmm4\n\t" op " %%zmm12, %%zmm13, %%zmm5\n\t" op   \
                        " %%zmm12, %%zmm13, %%zmm6\n\t" op " %%zmm12, %%zmm13, %%zmm7\n\t" op   \
                        " %%zmm12, %%zmm13, %%zmm8\n\t" op " %%zmm12, %%zmm13, %%zmm9\n\t" op   \
                        " %%zmm12, %%zmm13, %%zmm10\n\t" op " %%zmm12, %%zmm13, %%zmm11\n\t" :: \
                            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",   \
                              "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13");              \
  }                                                                                             \
  __asm__ volatile("vzeroupper")

// Zeros everywhere, so that no value is denormal.
void ClearRegisters() {
  __asm__ volatile("vzeroall" ::
                       : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                         "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

void DotProducts() {
  ClearRegisters();
  VIVACE_CHAINS("vdpbf16ps");
}

void MultiplyAdds() {
  ClearRegisters();
  VIVACE_CHAINS("vfmadd231ps");
}

#undef VIVACE_CHAINS

using Nanoseconds = std::chrono::nanoseconds;

Nanoseconds TimeOf(void (*work)()) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - start;
}

}  // namespace

double Bf16DotRate() {
  // The fastest of each, in turn: neighbours and a clock on its way up only ever add time.
  Nanoseconds dots = Nanoseconds::max(), adds = Nanoseconds::max();
  for (int trial = 0; trial < kTrials; ++trial) {
    dots = std::min(dots, TimeOf(DotProducts));
    adds = std::min(adds, TimeOf(MultiplyAdds));
  }
  constexpr double kMacsOfDot = 32, kMacsOfAdd = 16;
  return kMacsOfDot / kMacsOfAdd * static_cast<double>(adds.count()) /
         static_cast<double>(std::max<int64_t>(1, dots.count()));
}

}  // namespace vivace::kernels::x86
