#include "kernels/vocab_tiers.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/vocab_impl.h"

namespace vivace::kernels::avx512 {
namespace {

struct VocabVec : Vec {
  // Into a register and stored whole: storing compressed is slow on some processors.
  static F Compress(F x, uint32_t bits) {
    return _mm512_maskz_compress_ps(static_cast<__mmask16>(bits), x);
  }
  static F Iota(int32_t first) {
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_set1_epi32(first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
  }
};

}  // namespace

constinit const VocabOps kVocabOps = MakeVocabOps<VocabVec>();

}  // namespace vivace::kernels::avx512
