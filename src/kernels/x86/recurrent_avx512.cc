#include "kernels/x86/recurrent_impl.h"
#include "kernels/x86/vec_avx512.h"

namespace vivace::kernels::avx512 {

constinit const RecurrentKernels kRecurrentKernels = {ConvolveImpl<Vec>, AdvanceImpl<Vec>};

}  // namespace vivace::kernels::avx512
