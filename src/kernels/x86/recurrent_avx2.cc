#include "kernels/x86/recurrent_impl.h"
#include "kernels/x86/vec_avx2.h"

namespace vivace::kernels::avx2 {

constinit const RecurrentKernels kRecurrentKernels = {ConvolveImpl<Vec>, AdvanceImpl<Vec>};

}  // namespace vivace::kernels::avx2
