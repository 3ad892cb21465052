#include "kernels/x86/linear_rows_avx2.h"

#include <immintrin.h>

#include <numbers>

#include "kernels/x86/vec_avx2.h"

namespace vivace::kernels::avx2 {
namespace {

using x86::GroupRows;
using x86::kBlockCols;
using x86::kUnits;
using x86::TileOut;

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

// ---- preparing activations ----------------------------------------------------------------------

// All ones in the first `count` of 8 lanes.
inline __m256i FirstLanes(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline __m256 LoadFirst(const float* p, int count) {
  return count >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, FirstLanes(count));
}

float InverseRms(const float* x, int cols, float eps) {
  __m256 sums[4];
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  for (int k = 0; k < cols; k += 32) {
    VIVACE_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int count = cols - k - 8 * j;
      if (count <= 0) break;
      const __m256 v = LoadFirst(x + k + 8 * j, count);
      sums[j] = _mm256_fmadd_ps(v, v, sums[j]);
    }
  }
  const __m256 sum =
      _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
  const float mean = Vec::ReduceAdd(sum) / static_cast<float>(cols);
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

// Values k .. k + 7 of row `i`, normalised if asked; zero past the end.
inline __m256 LoadRow(const GroupRows& in, int i, float inverse_rms, int k) {
  const int count = in.cols - k;
  if (count <= 0) return _mm256_setzero_ps();
  const __m256 x = LoadFirst(in.rows[i] + k, count);
  if (!in.norm_weight) return x;
  const __m256 weight = LoadFirst(in.norm_weight + k, count);
  return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_set1_ps(inverse_rms)), weight);
}

inline bool Finite(__m256 v) {
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  return _mm256_movemask_ps(_mm256_cmp_ps(Vec::Abs(v), infinity, _CMP_LT_OQ)) == 0xff;
}

// Row `i` of an Int8Block<width>.
void StoreInt8(const __m256 (&x)[4], std::byte* block, int width, int i) {
  // Below this a block is zero: its scale would leave the normal range.
  constexpr float kTiny = 1e-30f;
  const float max = Vec::ReduceMax(_mm256_max_ps(_mm256_max_ps(Vec::Abs(x[0]), Vec::Abs(x[1])),
                                                 _mm256_max_ps(Vec::Abs(x[2]), Vec::Abs(x[3]))));
  const bool finite = Finite(x[0]) && Finite(x[1]) && Finite(x[2]) && Finite(x[3]);
  const bool usable = finite && max > kTiny;
  __m256i units = _mm256_setzero_si256();
  int sum0 = 0, sum1 = 0;
  if (usable) {
    const __m256 inverse = _mm256_set1_ps(127.0f / max);
    __m256i q[4];
    VIVACE_UNROLL
    for (int j = 0; j < 4; ++j) q[j] = _mm256_cvtps_epi32(_mm256_mul_ps(x[j], inverse));
    // Packing works within 128-bit lanes; the permutation puts the units back in order.
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    units = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    __m256i sums =
        _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), units), _mm256_set1_epi16(1));
    sums = _mm256_hadd_epi32(sums, sums);
    sums = _mm256_hadd_epi32(sums, sums);
    sum0 = _mm256_extract_epi32(sums, 0);
    sum1 = _mm256_extract_epi32(sums, 4);
  }
  auto* ints = reinterpret_cast<int32_t*>(block) + i;
  alignas(32) int32_t values[kUnits];
  _mm256_store_si256(reinterpret_cast<__m256i*>(values), units);
  for (int unit = 0; unit < kUnits; ++unit) ints[unit * width] = values[unit];
  auto* floats = reinterpret_cast<float*>(block) + i;
  const float scale = !finite ? __builtin_nanf("") : usable ? max * (1.0f / 127.0f) : 0.0f;
  floats[8 * width] = scale;
  floats[9 * width] = scale * static_cast<float>(sum0 + sum1);
  ints[10 * width] = -(sum0 + sum1);
  ints[11 * width] = -sum0;
  ints[12 * width] = -sum1;
}

// Row `i` of an Fp32Block<width>.
void StoreFp32(const __m256 (&x)[4], std::byte* block, int width, int i) {
  alignas(32) float values[kBlockCols];
  for (int j = 0; j < 4; ++j) _mm256_store_ps(values + 8 * j, x[j]);
  auto* out = reinterpret_cast<float*>(block) + i;
  for (int k = 0; k < kBlockCols; ++k) out[k * width] = values[k];
}

// ---- epilogues ----------------------------------------------------------------------------------

constexpr float kLog2E = std::numbers::log2e_v<float>;

// 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
inline __m256 GeluTanh(__m256 x) {
  constexpr float kTwice = 1.5957691216f;  // 2 sqrt(2 / pi)
  const __m256 cubic = _mm256_mul_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(0.044715f));
  const __m256 u = _mm256_fmadd_ps(cubic, x, x);
  return Vec::Over1Plus2To(_mm256_mul_ps(u, _mm256_set1_ps(-kTwice * kLog2E)), x);
}

inline __m256 LoadBias(const float* bias, __m256i mask) {
  return bias ? _mm256_maskload_ps(bias, mask) : _mm256_setzero_ps();
}

// Calls result(half, row, address, mask) for each half row of a tile and stores what it returns.
template <typename Result>
inline void StoreTile(const TileOut& out, Result result) {
  for (int half = 0; half < 2 && 8 * half < out.valid; ++half) {
    const __m256i mask = FirstLanes(out.valid - 8 * half);
    for (int i = 0; i < out.width; ++i) {
      float* const p = out.out + i * out.stride + 8 * half;
      _mm256_maskstore_ps(p, mask, result(half, i, p, mask));
    }
  }
}

inline __m256 Biased(const float* c, const float* bias, int half, int i, __m256i mask) {
  const __m256 b = LoadBias(bias ? bias + 8 * half : nullptr, mask);
  return _mm256_add_ps(_mm256_loadu_ps(c + 16 * i + 8 * half), b);
}

template <__m256 (*kActivation)(__m256)>
void ActivationMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                   const TileOut& out) {
  StoreTile(out, [&](int half, int i, const float*, __m256i mask) {
    return _mm256_mul_ps(kActivation(Biased(gate, gate_bias, half, i, mask)),
                         Biased(up, up_bias, half, i, mask));
  });
}

}  // namespace

void Prepare(const GroupRows& in) {
  for (int i = 0; i < in.width; ++i) {
    const float inverse_rms = in.norm_weight ? InverseRms(in.rows[i], in.cols, in.norm_eps) : 1.0f;
    for (int b = in.first_block; b < in.last_block; ++b) {
      __m256 x[4];
      for (int j = 0; j < 4; ++j) x[j] = LoadRow(in, i, inverse_rms, b * kBlockCols + 8 * j);
      const size_t blocks_before = static_cast<size_t>(b) * static_cast<size_t>(in.width);
      if (in.int8) StoreInt8(x, in.int8 + blocks_before * x86::kInt8BlockBytes, in.width, i);
      if (in.fp32) StoreFp32(x, in.fp32 + blocks_before * x86::kFp32BlockBytes, in.width, i);
    }
  }
}

void Store(const float* c, const float* bias, const TileOut& out) {
  StoreTile(out, [&](int half, int i, const float*, __m256i mask) {
    return Biased(c, bias, half, i, mask);
  });
}

void Add(const float* c, const float* bias, const TileOut& out) {
  StoreTile(out, [&](int half, int i, const float* p, __m256i mask) {
    return _mm256_add_ps(_mm256_maskload_ps(p, mask), Biased(c, bias, half, i, mask));
  });
}

void SiluMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
             const TileOut& out) {
  ActivationMul<Vec::Silu>(gate, up, gate_bias, up_bias, out);
}

void GeluTanhMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                 const TileOut& out) {
  ActivationMul<GeluTanh>(gate, up, gate_bias, up_bias, out);
}

void FoldBest(const float* c, const float* bias, int width, int valid, int32_t first_id,
              x86::Best* best) {
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  const __m256i masks[2] = {FirstLanes(valid), FirstLanes(valid - 8)};
  for (int i = 0; i < width; ++i) {
    __m256 logits[2];
    int bad = 0;
    for (int half = 0; half < 2; ++half) {
      const __m256 v = Biased(c, bias, half, i, masks[half]);
      // Lanes of no output are -infinity, which is no candidate.
      logits[half] = _mm256_blendv_ps(_mm256_sub_ps(_mm256_setzero_ps(), infinity), v,
                                      _mm256_castsi256_ps(masks[half]));
      bad |= _mm256_movemask_ps(_mm256_cmp_ps(logits[half], infinity, _CMP_NLT_UQ));
    }
    if (bad) {
      best[i] = {__builtin_inff(), -1};
      continue;
    }
    const float max = Vec::ReduceMax(_mm256_max_ps(logits[0], logits[1]));
    const __m256 all = _mm256_set1_ps(max);
    const int at = _mm256_movemask_ps(_mm256_cmp_ps(logits[0], all, _CMP_EQ_OQ)) |
                   _mm256_movemask_ps(_mm256_cmp_ps(logits[1], all, _CMP_EQ_OQ)) << 8;
    const int32_t id = first_id + __builtin_ctz(static_cast<unsigned>(at));
    if (max > best[i].value || (max == best[i].value && id < best[i].id)) best[i] = {max, id};
  }
}

}  // namespace vivace::kernels::avx2
