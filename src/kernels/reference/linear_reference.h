// The linear ops in plain fp32: the oracle the fast tiers are tested against. Any format that
// quant/ can dequantise; weights stay as the file has them and are expanded row by row.
#pragma once

#include "kernels/linear.h"

namespace vivace::kernels::reference {

extern const LinearOps kLinearOps;

}  // namespace vivace::kernels::reference
