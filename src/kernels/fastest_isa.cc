#include "kernels/fastest_isa.h"

#include "kernels/x86/bf16_rate.h"

namespace vivace::kernels {
namespace {

// Known processors have 0.5 and 2. Above 1, because rows are rounded to bf16 for it.
constexpr double kWorthIt = 1.3;

Isa Measure() {
  if (!Supported(Isa::kAvx512Bf16)) return BestIsa();
  return x86::Bf16DotRate() >= kWorthIt ? Isa::kAvx512Bf16 : BestIsa();
}

}  // namespace

Isa FastestIsa() {
  static const Isa kFastest = Measure();
  return kFastest;
}

}  // namespace vivace::kernels
