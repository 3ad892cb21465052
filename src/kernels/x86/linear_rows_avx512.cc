// Rows in and out of the AVX-512 tiers' products.
#include "kernels/x86/linear_rows_avx512.h"

#include <immintrin.h>

#include <numbers>

#include "kernels/x86/vec_avx512.h"

namespace vivace::kernels::avx512 {
namespace {

using x86::GroupRows;
using x86::kBlockCols;
using x86::kMaxWidth;
using x86::kUnits;
using x86::TileOut;

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

// Vec::LaneMask(0, count), but by other instructions: with those, int8 rows take 3 to 15 % longer.
inline __mmask16 FirstLanes(int count) {
  return count >= 16 ? __mmask16{0xffff}
                     : static_cast<__mmask16>((1u << (count > 0 ? count : 0)) - 1);
}

// What a row's values are multiplied by.
struct RowFactors {
  float norm = 1;     // by RMSNorm, before its weight
  float scale = 0;    // of int8 values in a block of scale 1; NaN: the row has a NaN or an infinity
  float inverse = 0;  // 1 / scale; zero for a row of zeros
};

// Below this a row is zero: its scale would leave the normal range.
constexpr float kTinyRow = 1e-28f;

// One pass over a row for the sum of squares and the largest magnitude, weighted. As integers
// infinity and NaN compare largest, so neither is lost.
RowFactors MeasureRow(const GroupRows& in, const float* x) {
  __m512 squares[4];
  __m512i largest[4];
  for (auto& sum : squares) sum = _mm512_setzero_ps();
  for (auto& bits : largest) bits = _mm512_setzero_si512();
  for (int k = 0; k < in.cols; k += 64) {
    VIVACE_UNROLL
    for (int j = 0; j < 4; ++j) {
      const __mmask16 lanes = FirstLanes(in.cols - k - 16 * j);
      __m512 v = _mm512_maskz_loadu_ps(lanes, x + k + 16 * j);
      squares[j] = _mm512_fmadd_ps(v, v, squares[j]);
      if (in.norm_weight) {
        v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(lanes, in.norm_weight + k + 16 * j));
      }
      largest[j] = _mm512_max_epu32(largest[j], _mm512_castps_si512(_mm512_abs_ps(v)));
    }
  }
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(squares[0], squares[1]), _mm512_add_ps(squares[2], squares[3]));
  const __m512i bits = _mm512_max_epu32(_mm512_max_epu32(largest[0], largest[1]),
                                        _mm512_max_epu32(largest[2], largest[3]));
  RowFactors row;
  if (in.norm_weight) {
    const float mean = _mm512_reduce_add_ps(sum) / static_cast<float>(in.cols);
    row.norm = 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + in.norm_eps)));
  }
  const float max = _mm_cvtss_f32(_mm_castsi128_ps(
                        _mm_cvtsi32_si128(static_cast<int>(_mm512_reduce_max_epu32(bits))))) *
                    row.norm;
  if (!(max <= __FLT_MAX__)) {
    row.scale = __builtin_nanf("");
  } else if (max > kTinyRow) {
    constexpr float kStep = 1.0f / (1 << kMaxShift);
    row.scale = max * (kStep / 127.0f);
    row.inverse = (127.0f / max) * (1 << kMaxShift);
  }
  return row;
}

// Values k .. k + 15 of row `i`, normalised if asked; zero past the end.
inline __m512 LoadRow(const GroupRows& in, int i, float norm, int k) {
  const auto load = [&](const float* p) {
    return in.cols - k >= 16 ? Vec::Load(p + k)
                             : _mm512_maskz_loadu_ps(FirstLanes(in.cols - k), p + k);
  };
  const __m512 x = load(in.rows[i]);
  if (!in.norm_weight) return x;
  const __m512 weight = load(in.norm_weight);
  return _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(norm)), weight);
}

// Blocks are quantised four at a time, to share the reductions: of four rows, or of one.
constexpr int kBatch = 4;

struct Quantised {
  __m256i q[kBatch];  // 32 int8 values each
  __m128i scale;      // the fields of ScaledBlock, one lane per block
  __m128i sum;        // one of its `sums`
  __m128i minus[3];   // `minus`, then `minus16`
};

// The largest magnitude of each block.
inline __m128 Magnitudes(const __m512 (&x)[kBatch][2]) {
  __m128i m[kBatch];
  VIVACE_UNROLL
  for (int j = 0; j < kBatch; ++j) {
    const __m512i both = _mm512_max_epu32(_mm512_castps_si512(_mm512_abs_ps(x[j][0])),
                                          _mm512_castps_si512(_mm512_abs_ps(x[j][1])));
    const __m256i half =
        _mm256_max_epu32(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
    m[j] = _mm_max_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  }
  const __m128i m01 = _mm_max_epu32(_mm_unpacklo_epi32(m[0], m[1]), _mm_unpackhi_epi32(m[0], m[1]));
  const __m128i m23 = _mm_max_epu32(_mm_unpacklo_epi32(m[2], m[3]), _mm_unpackhi_epi32(m[2], m[3]));
  return _mm_castsi128_ps(
      _mm_max_epu32(_mm_unpacklo_epi64(m01, m23), _mm_unpackhi_epi64(m01, m23)));
}

// `inverse`: of the scale of each block's row.
inline Quantised Quantise(const __m512 (&x)[kBatch][2], __m128 inverse) {
  // The smallest scale with which the block's largest value is 127 or less.
  const __m128 largest = _mm_mul_ps(Magnitudes(x), _mm_mul_ps(inverse, _mm_set1_ps(1.0f / 127.0f)));
  constexpr int kDropped = (1 << (kExponentPlace - kScaleStepBits)) - 1;
  const __m128i up = _mm_andnot_si128(
      _mm_set1_epi32(kDropped), _mm_add_epi32(_mm_castps_si128(largest), _mm_set1_epi32(kDropped)));
  Quantised out;
  out.scale = _mm_max_epi32(_mm_min_epi32(up, _mm_set1_epi32((127 + kMaxShift) << kExponentPlace)),
                            _mm_set1_epi32(127 << kExponentPlace));
  const __m128 scale = _mm_castsi128_ps(out.scale);
  const __m512 inverses = _mm512_castps128_ps512(_mm_div_ps(inverse, scale));
  __m256i sums[kBatch];
  VIVACE_UNROLL
  for (int j = 0; j < kBatch; ++j) {
    const __m512 factor = _mm512_permutexvar_ps(_mm512_set1_epi32(j), inverses);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x[j][0], factor));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x[j][1], factor));
    out.q[j] = _mm256_set_m128i(_mm512_cvtepi32_epi8(q1), _mm512_cvtepi32_epi8(q0));
    sums[j] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), out.q[j]);
  }
  // Low half: sums of columns 0 .. 15 of the four blocks; high half: of columns 16 .. 31.
  const __m256i sums16 =
      _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  const __m128i sum0 = _mm256_castsi256_si128(sums16), sum1 = _mm256_extracti128_si256(sums16, 1);
  const __m128i sum = _mm_add_epi32(sum0, sum1), zero = _mm_setzero_si128();
  constexpr float kSumUnit = 1.0f / (1 << kSumShift);
  out.sum =
      _mm_cvtps_epi32(_mm_mul_ps(_mm_cvtepi32_ps(sum), _mm_mul_ps(scale, _mm_set1_ps(kSumUnit))));
  out.minus[0] = _mm_sub_epi32(zero, sum);
  out.minus[1] = _mm_sub_epi32(zero, sum0);
  out.minus[2] = _mm_sub_epi32(zero, sum1);
  return out;
}

// The first `count` lanes to p[0 .. count).
inline void StoreLanes(int32_t* p, __m128i lanes, int count) {
  if (count == kBatch) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), lanes);
  } else {
    _mm_mask_storeu_epi32(p, static_cast<__mmask8>((1 << count) - 1), lanes);
  }
}

// Two `sums` in one field.
inline __m128i Pair(__m128i even, __m128i odd) {
  constexpr int kOddWords = 0xaa;
  return _mm_blend_epi16(even, _mm_slli_epi32(odd, 16), kOddWords);
}

constexpr int kSumsLine = 9;  // of a ScaledBlock

// The four are rows i .. i + count - 1 of one ScaledBlock<width>.
inline void StoreAsRows(const Quantised& in, int count, std::byte* block, int width, int i) {
  auto* const ints = reinterpret_cast<int32_t*>(block) + i;
  const auto store = [&](int line, __m128i value) {
    StoreLanes(ints + line * width, value, count);
  };
  // A transposition: from four rows of 8 units to 8 units of four rows.
  const __m256i q01_low = _mm256_unpacklo_epi32(in.q[0], in.q[1]);
  const __m256i q01_high = _mm256_unpackhi_epi32(in.q[0], in.q[1]);
  const __m256i q23_low = _mm256_unpacklo_epi32(in.q[2], in.q[3]);
  const __m256i q23_high = _mm256_unpackhi_epi32(in.q[2], in.q[3]);
  const __m256i units[4] = {
      _mm256_unpacklo_epi64(q01_low, q23_low), _mm256_unpackhi_epi64(q01_low, q23_low),
      _mm256_unpacklo_epi64(q01_high, q23_high), _mm256_unpackhi_epi64(q01_high, q23_high)};
  VIVACE_UNROLL
  for (int unit = 0; unit < 4; ++unit) {
    store(unit, _mm256_castsi256_si128(units[unit]));
    store(unit + 4, _mm256_extracti128_si256(units[unit], 1));
  }
  store(8, in.scale);
  store(kSumsLine, Pair(in.sum, _mm_setzero_si128()));  // until the next block is there
  for (int k = 0; k < 3; ++k) store(10 + k, in.minus[k]);
}

// The four are row `i` of `count` ScaledBlock<width>s in a row.
inline void StoreAsBlocks(const Quantised& in, int count, std::byte* blocks, int width, int i) {
  alignas(32) int32_t units[kBatch][kUnits];
  alignas(16) int32_t fields[5][kBatch];
  for (int j = 0; j < kBatch; ++j)
    _mm256_store_si256(reinterpret_cast<__m256i*>(units[j]), in.q[j]);
  const auto store = [](int32_t* p, __m128i v) {
    _mm_store_si128(reinterpret_cast<__m128i*>(p), v);
  };
  store(fields[0], in.scale);
  const __m128i sum = _mm_maskz_mov_epi32(static_cast<__mmask8>((1 << count) - 1), in.sum);
  store(fields[kSumsLine - 8], Pair(sum, _mm_srli_epi64(sum, 32)));
  for (int k = 0; k < 3; ++k) store(fields[2 + k], in.minus[k]);
  for (int j = 0; j < count; ++j, blocks += static_cast<size_t>(width) * x86::kInt8BlockBytes) {
    auto* const ints = reinterpret_cast<int32_t*>(blocks) + i;
    for (int unit = 0; unit < kUnits; ++unit) ints[unit * width] = units[j][unit];
    for (int k = 0; k < 5; ++k) ints[(8 + k) * width] = fields[k][j];
  }
}

inline void LoadBlock(const GroupRows& in, int i, float norm, int block, __m512 (&x)[2]) {
  x[0] = LoadRow(in, i, norm, block * kBlockCols);
  x[1] = LoadRow(in, i, norm, block * kBlockCols + 16);
}

void PrepareInt8(const GroupRows& in, const RowFactors* factors) {
  const size_t block_bytes = static_cast<size_t>(in.width) * x86::kInt8BlockBytes;
  __m512 x[kBatch][2];
  for (int i = 0; i < in.width; i += kBatch) {
    const int rows = in.width - i < kBatch ? in.width - i : kBatch;
    const auto row = [&](int j) { return j < rows ? i + j : i; };
    std::byte* out = in.int8 + static_cast<size_t>(in.first_block) * block_bytes;
    if (rows == 1) {
      const __m128 inverse = _mm_set1_ps(factors[i].inverse);
      for (int b = in.first_block; b < in.last_block; b += kBatch, out += kBatch * block_bytes) {
        const int count = in.last_block - b < kBatch ? in.last_block - b : kBatch;
        for (int j = 0; j < kBatch; ++j) {
          LoadBlock(in, i, factors[i].norm, j < count ? b + j : b, x[j]);
        }
        StoreAsBlocks(Quantise(x, inverse), count, out, in.width, i);
      }
      continue;
    }
    const __m128 inverse = _mm_setr_ps(factors[row(0)].inverse, factors[row(1)].inverse,
                                       factors[row(2)].inverse, factors[row(3)].inverse);
    __m128i even = _mm_setzero_si128();  // sums of the last even block
    for (int b = in.first_block; b < in.last_block; ++b, out += block_bytes) {
      for (int j = 0; j < kBatch; ++j) LoadBlock(in, row(j), factors[row(j)].norm, b, x[j]);
      const Quantised block = Quantise(x, inverse);
      StoreAsRows(block, rows, out, in.width, i);
      if (b % 2 == 0) {
        even = block.sum;
      } else {
        auto* const sums = reinterpret_cast<int32_t*>(out - block_bytes) + kSumsLine * in.width;
        StoreLanes(sums + i, Pair(even, block.sum), rows);
      }
    }
  }
  if (in.first_block > 0) return;
  const int blocks = (in.cols + kBlockCols - 1) / kBlockCols;
  auto* const scales =
      reinterpret_cast<float*>(in.int8 + static_cast<size_t>(blocks) * block_bytes);
  for (int i = 0; i < in.width; ++i) scales[i] = factors[i].scale;
}

// Row `i` of an Fp32Block<width>.
void StoreFp32(__m512 x0, __m512 x1, std::byte* block, int width, int i) {
  alignas(64) float values[kBlockCols];
  _mm512_store_ps(values, x0);
  _mm512_store_ps(values + 16, x1);
  auto* out = reinterpret_cast<float*>(block) + i;
  for (int k = 0; k < kBlockCols; ++k) out[k * width] = values[k];
}

void PrepareFp32(const GroupRows& in, const RowFactors* factors) {
  __m512 x[2];
  for (int i = 0; i < in.width; ++i) {
    for (int b = in.first_block; b < in.last_block; ++b) {
      const size_t block = static_cast<size_t>(b) * static_cast<size_t>(in.width);
      LoadBlock(in, i, factors[i].norm, b, x);
      StoreFp32(x[0], x[1], in.fp32 + block * x86::kFp32BlockBytes, in.width, i);
    }
  }
}

// ---- results ------------------------------------------------------------------------------------

constexpr float kLog2E = std::numbers::log2e_v<float>;

// 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
inline __m512 GeluTanh(__m512 x) {
  constexpr float kTwice = 1.5957691216f;  // 2 sqrt(2 / pi)
  const __m512 cubic = _mm512_mul_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(0.044715f));
  const __m512 u = _mm512_fmadd_ps(cubic, x, x);
  return Vec::Over1Plus2To(_mm512_mul_ps(u, _mm512_set1_ps(-kTwice * kLog2E)), x);
}

inline __m512 LoadBias(const float* bias, __mmask16 mask) {
  return bias ? _mm512_maskz_loadu_ps(mask, bias) : _mm512_setzero_ps();
}

template <__m512 (*kActivation)(__m512)>
void ActivationMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                   const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 gate_b = LoadBias(gate_bias, mask), up_b = LoadBias(up_bias, mask);
  for (int i = 0; i < out.width; ++i) {
    const __m512 g = _mm512_add_ps(Vec::Load(gate + 16 * i), gate_b);
    const __m512 u = _mm512_add_ps(Vec::Load(up + 16 * i), up_b);
    _mm512_mask_storeu_ps(out.out + i * out.stride, mask, _mm512_mul_ps(kActivation(g), u));
  }
}

// Row `i` of Bf16Block<width>s.
void PrepareBf16(const GroupRows& in, const RowFactors* factors) {
  const __m512i odd_words =
      _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 31, 29, 27, 25,
                       23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  __m512 x[2];
  for (int i = 0; i < in.width; ++i) {
    for (int b = in.first_block; b < in.last_block; ++b) {
      LoadBlock(in, i, factors[i].norm, b, x);
      alignas(32) uint32_t pairs[2][8];
      for (int half = 0; half < 2; ++half) {
        const __m512i words = _mm512_permutexvar_epi16(odd_words, Vec::RoundToBf16(x[half]));
        _mm256_store_si256(reinterpret_cast<__m256i*>(pairs[half]), _mm512_castsi512_si256(words));
      }
      const size_t block = static_cast<size_t>(b) * static_cast<size_t>(in.width);
      auto* out = reinterpret_cast<uint32_t*>(in.bf16 + block * x86::kBf16BlockBytes) + i;
      for (int k = 0; k < kBlockCols / 2; ++k) out[k * in.width] = pairs[k / 8][k % 8];
    }
  }
}

}  // namespace

void Prepare(const GroupRows& in) {
  RowFactors factors[kMaxWidth];
  if (in.int8 || in.norm_weight) {
    for (int i = 0; i < in.width; ++i) factors[i] = MeasureRow(in, in.rows[i]);
  }
  if (in.int8) PrepareInt8(in, factors);
  if (in.fp32) PrepareFp32(in, factors);
  if (in.bf16) PrepareBf16(in, factors);
}

void Store(const float* c, const float* bias, const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 b = LoadBias(bias, mask);
  for (int i = 0; i < out.width; ++i) {
    _mm512_mask_storeu_ps(out.out + i * out.stride, mask, _mm512_add_ps(Vec::Load(c + 16 * i), b));
  }
}

void Add(const float* c, const float* bias, const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 b = LoadBias(bias, mask);
  for (int i = 0; i < out.width; ++i) {
    float* const p = out.out + i * out.stride;
    const __m512 before = _mm512_maskz_loadu_ps(mask, p);
    _mm512_mask_storeu_ps(p, mask, _mm512_add_ps(before, _mm512_add_ps(Vec::Load(c + 16 * i), b)));
  }
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
  const __mmask16 mask = FirstLanes(valid);
  const __m512 b = LoadBias(bias, mask), infinity = _mm512_set1_ps(__builtin_inff());
  for (int i = 0; i < width; ++i) {
    const __m512 logits = _mm512_add_ps(Vec::Load(c + 16 * i), b);
    if (_mm512_mask_cmp_ps_mask(mask, logits, infinity, _CMP_NLT_UQ)) {
      best[i] = {__builtin_inff(), -1};
      continue;
    }
    const float max = _mm512_mask_reduce_max_ps(mask, logits);
    const auto at = _mm512_mask_cmp_ps_mask(mask, logits, _mm512_set1_ps(max), _CMP_EQ_OQ);
    const int32_t id = first_id + __builtin_ctz(at);
    const x86::Best& old = best[i];
    if (max > old.value || (max == old.value && id < old.id)) best[i] = {max, id};
  }
}

#undef VIVACE_UNROLL

}  // namespace vivace::kernels::avx512
