// What `--isa auto` means.
#pragma once

#include "base/cpu.h"

namespace vivace::kernels {

// BestIsa(), or kAvx512Bf16 if this machine has it and its dot products of bf16 are worth it: there
// are processors on which they are half as fast as fp32 multiply-adds. Measured at the first call,
// which takes under a millisecond; later calls return the same. Any thread.
Isa FastestIsa();

}  // namespace vivace::kernels
