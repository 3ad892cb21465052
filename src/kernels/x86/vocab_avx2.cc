#include "kernels/vocab_tiers.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/vocab_impl.h"

namespace vivace::kernels::avx2 {

constinit const VocabOps kVocabOps = MakeVocabOps<Vec>();

}  // namespace vivace::kernels::avx2
