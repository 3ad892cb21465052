// The AVX2 tier: products by vpmaddubsw.
#include "kernels/x86/linear_ymm_impl.h"

namespace vivace::kernels::x86 {

constinit const TierKernels kAvx2Kernels = MakeKernels();

}  // namespace vivace::kernels::x86
