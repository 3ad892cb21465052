// The linear ops of the x86 tiers: one driver over the tier's kernels.
#pragma once

#include "kernels/linear.h"

namespace vivace::kernels::x86 {

extern const LinearOps kAvx2LinearOps;
extern const LinearOps kAvxVnniLinearOps;
extern const LinearOps kAvx512LinearOps;
extern const LinearOps kAvx512Bf16LinearOps;

}  // namespace vivace::kernels::x86
