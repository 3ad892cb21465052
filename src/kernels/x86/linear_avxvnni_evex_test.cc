// The AVX-VNNI tier's kernels in AVX-512's encoding of the same instruction; for
// linear_avxvnni_test.cc. Built for AVX-512, so nothing else may be in this file.
#include "kernels/x86/linear_ymm_impl.h"

namespace vivace::kernels::x86 {

extern const TierKernels kAvxVnniEvexKernels;
constinit const TierKernels kAvxVnniEvexKernels = MakeKernels();

}  // namespace vivace::kernels::x86
