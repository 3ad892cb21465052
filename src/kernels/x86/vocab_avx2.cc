#include <array>

#include "kernels/vocab_tiers.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/vocab_impl.h"

namespace vivace::kernels::avx2 {
namespace {

// For each set of lanes, which lane goes where: byte i of an entry is the i-th lane of the set.
constexpr std::array<uint64_t, 256> MakeCompressTable() {
  std::array<uint64_t, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    int at = 0;
    for (uint64_t lane = 0; lane < 8; ++lane) {
      if ((bits >> lane & 1) != 0) table[bits] |= lane << (8 * at++);
    }
  }
  return table;
}
constexpr std::array<uint64_t, 256> kCompressTable = MakeCompressTable();

struct VocabVec : Vec {
  static F Compress(F x, uint32_t bits) {
    const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kCompressTable[bits]));
    return _mm256_permutevar8x32_ps(x, _mm256_cvtepu8_epi32(lanes));
  }
  static F Iota(int32_t first) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  }
};

}  // namespace

constinit const VocabOps kVocabOps = MakeVocabOps<VocabVec>();

}  // namespace vivace::kernels::avx2
