// The AVX-VNNI tier: products by vpdpbusd in its VEX form. All else is the AVX2 tier's.
#include "kernels/x86/linear_ymm_impl.h"

namespace vivace::kernels::x86 {

constinit const TierKernels kAvxVnniKernels = MakeKernels();

}  // namespace vivace::kernels::x86
