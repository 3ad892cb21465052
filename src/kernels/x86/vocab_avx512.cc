#include "kernels/vocab_tiers.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/vocab_impl.h"

namespace vivace::kernels::avx512 {

constinit const VocabOps kVocabOps = MakeVocabOps<Vec>();

}  // namespace vivace::kernels::avx512
