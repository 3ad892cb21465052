// Tile kernels of the AVX-512 VNNI tier. One zmm holds 16 outputs of one row.
//
// Every kernel, whatever its width, does for each output the same float operations in the same
// order: block by block, the exact integer (or 32-step fp32) sum, then its scaling into one fp32
// accumulator. That is what makes a row's result independent of the rows beside it.
#include <immintrin.h>

#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx512 {
namespace {

using x86::Fp32Block;
using x86::GroupRows;
using x86::Int8Block;
using x86::kBlockCols;
using x86::kUnits;
using x86::TileOut;

constexpr int kMaxWidth = 12;  // 12 integer and 12 float accumulators of 32 registers

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

inline __m512 HalfToFloat(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// ---- int8 blocks: steps -------------------------------------------------------------------------

// acc[i] += the products of a block of 4-bit weights: unit u in the low nibbles of q[u], unit u + 4
// in the high ones.
template <int kWidth>
inline void DotNibbles(const uint8_t (&q)[4][64], const Int8Block<kWidth>& a,
                       __m512i (&acc)[kWidth]) {
  const __m512i mask = _mm512_set1_epi8(15);
  VIVACE_UNROLL
  for (int unit = 0; unit < 4; ++unit) {
    const __m512i raw = _mm512_loadu_si512(q[unit]);
    const __m512i low = _mm512_and_si512(raw, mask);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(raw, 4), mask);
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      acc[i] = _mm512_dpbusd_epi32(acc[i], low, _mm512_set1_epi32(a.q[unit][i]));
    }
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      acc[i] = _mm512_dpbusd_epi32(acc[i], high, _mm512_set1_epi32(a.q[unit + 4][i]));
    }
  }
}

// f[i] += d * a.d[i] * acc[i]
template <int kWidth>
inline void Scale(__m512 d, const Int8Block<kWidth>& a, const __m512i (&acc)[kWidth],
                  __m512 (&f)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    f[i] =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[i]), _mm512_mul_ps(d, _mm512_set1_ps(a.d[i])), f[i]);
  }
}

template <int kWidth>
inline void Step(const x86::TileQ4_0& tile, const Int8Block<kWidth>& a, __m512 (&f)[kWidth]) {
  __m512i acc[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_slli_epi32(_mm512_set1_epi32(a.minus[i]), 3);
  DotNibbles(tile.q, a, acc);
  Scale(HalfToFloat(tile.d), a, acc, f);
}

template <int kWidth>
inline void Step(const x86::TileQ4_1& tile, const Int8Block<kWidth>& a, __m512 (&f)[kWidth]) {
  __m512i acc[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_setzero_si512();
  DotNibbles(tile.q, a, acc);
  Scale(HalfToFloat(tile.d), a, acc, f);
  const __m512 m = HalfToFloat(tile.m);
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_fmadd_ps(m, _mm512_set1_ps(a.sum[i]), f[i]);
}

template <int kWidth>
inline void Step(const x86::TileQ8_0& tile, const Int8Block<kWidth>& a, __m512 (&f)[kWidth]) {
  __m512i acc[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_slli_epi32(_mm512_set1_epi32(a.minus[i]), 7);
  VIVACE_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) {
    const __m512i w = _mm512_loadu_si512(tile.q[unit]);
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      acc[i] = _mm512_dpbusd_epi32(acc[i], w, _mm512_set1_epi32(a.q[unit][i]));
    }
  }
  Scale(HalfToFloat(tile.d), a, acc, f);
}

template <int kWidth>
inline void Step(const x86::TileQ6_K& tile, const Int8Block<kWidth>& a, __m512 (&f)[kWidth]) {
  const __m512i low_mask = _mm512_set1_epi8(15), high_mask = _mm512_set1_epi8(48);
  const __m512 d = HalfToFloat(tile.d);
  VIVACE_UNROLL
  for (int half = 0; half < 2; ++half) {  // columns 0 .. 15 are the low nibbles, 16 .. 31 the high
    __m512i acc[kWidth];
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      acc[i] = _mm512_slli_epi32(_mm512_set1_epi32(a.minus16[half][i]), 5);
    }
    const __m512i top = _mm512_loadu_si512(tile.high[half]);
    VIVACE_UNROLL
    for (int unit = 0; unit < 4; ++unit) {
      const __m512i raw = _mm512_loadu_si512(tile.q[unit]);
      const __m512i low = half == 0 ? raw : _mm512_srli_epi16(raw, 4);
      // The two bits of this unit to bits 4 and 5 of each byte.
      const __m512i high =
          unit < 2 ? _mm512_slli_epi16(top, 4 - 2 * unit) : _mm512_srli_epi16(top, 2 * unit - 4);
      const __m512i w =
          _mm512_or_si512(_mm512_and_si512(low, low_mask), _mm512_and_si512(high, high_mask));
      VIVACE_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        acc[i] = _mm512_dpbusd_epi32(acc[i], w, _mm512_set1_epi32(a.q[4 * half + unit][i]));
      }
    }
    const __m512i scale =
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile.scale[half])));
    Scale(_mm512_mul_ps(d, _mm512_cvtepi32_ps(scale)), a, acc, f);
  }
}

// ---- fp32 blocks: steps -------------------------------------------------------------------------

inline __m512 Load(const float* p) { return _mm512_loadu_ps(p); }
struct Half {
  static __m512 Load(const uint16_t* p) { return HalfToFloat(p); }
};
struct BFloat {
  static __m512 Load(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

template <int kWidth, typename LoadWeights>
inline void StepFp32(const Fp32Block<kWidth>& a, __m512 (&f)[kWidth], LoadWeights load) {
  __m512 acc[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (int k = 0; k < kBlockCols; ++k) {
    const __m512 w = load(k);
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_fmadd_ps(w, _mm512_set1_ps(a.x[k][i]), acc[i]);
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_add_ps(f[i], acc[i]);
}

template <int kWidth>
inline void Step(const x86::TileF32& tile, const Fp32Block<kWidth>& a, __m512 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k) { return Load(tile.w[k]); });
}
template <int kWidth>
inline void Step(const x86::TileF16& tile, const Fp32Block<kWidth>& a, __m512 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k) { return Half::Load(tile.w[k]); });
}
template <int kWidth>
inline void Step(const x86::TileBF16& tile, const Fp32Block<kWidth>& a, __m512 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k) { return BFloat::Load(tile.w[k]); });
}

template <typename Tile, template <int> typename Block, int kWidth>
void Multiply(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const Tile*>(panel);
  const auto* rows = reinterpret_cast<const Block<kWidth>*>(group);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_setzero_ps();
  for (int b = 0; b < blocks; ++b) Step(tiles[b], rows[b], f);
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) _mm512_storeu_ps(c + 16 * i, f[i]);
}

// ---- preparing activations ----------------------------------------------------------------------

inline __mmask16 FirstLanes(int count) {
  return count >= 16 ? __mmask16{0xffff}
                     : static_cast<__mmask16>((1u << (count > 0 ? count : 0)) - 1);
}

float InverseRms(const float* x, int cols, float eps) {
  __m512 sums[4];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (int k = 0; k < cols; k += 64) {
    VIVACE_UNROLL
    for (int j = 0; j < 4; ++j) {
      const __m512 v = _mm512_maskz_loadu_ps(FirstLanes(cols - k - 16 * j), x + k + 16 * j);
      sums[j] = _mm512_fmadd_ps(v, v, sums[j]);
    }
  }
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
  const float mean = _mm512_reduce_add_ps(sum) / static_cast<float>(cols);
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

// Values k .. k + 15 of row `i`, normalised if asked; zero past the end.
inline __m512 LoadRow(const GroupRows& in, int i, float inverse_rms, int k) {
  const auto load = [&](const float* p) {
    return in.cols - k >= 16 ? Load(p + k) : _mm512_maskz_loadu_ps(FirstLanes(in.cols - k), p + k);
  };
  const __m512 x = load(in.rows[i]);
  if (!in.norm_weight) return x;
  const __m512 weight = load(in.norm_weight);
  return _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(inverse_rms)), weight);
}

// Blocks are quantised four at a time, to share the reductions: of four rows, or of one.
constexpr int kBatch = 4;

struct Quantised {
  __m256i q[kBatch];  // 32 int8 values each
  __m128 scale, sum;  // the fields of Int8Block, one lane per block
  __m128i minus[3];   // `minus`, then `minus16`
};

// The largest magnitude of each block as fp32 bits. As integers infinity and NaN compare largest,
// so neither is lost.
inline __m128i Magnitudes(const __m512 (&x)[kBatch][2]) {
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
  return _mm_max_epu32(_mm_unpacklo_epi64(m01, m23), _mm_unpackhi_epi64(m01, m23));
}

inline Quantised Quantise(const __m512 (&x)[kBatch][2]) {
  // Below this a block is zero: its scale would leave the normal range.
  const __m128 tiny = _mm_set1_ps(1e-30f);
  const __m128i magnitudes = Magnitudes(x);
  const __m128 max = _mm_castsi128_ps(magnitudes);
  const __mmask8 finite = _mm_cmplt_epu32_mask(magnitudes, _mm_set1_epi32(0x7f800000));
  const __mmask8 usable = _mm_mask_cmp_ps_mask(finite, max, tiny, _CMP_GT_OQ);
  const __m512 inverses =
      _mm512_castps128_ps512(_mm_maskz_div_ps(usable, _mm_set1_ps(127.0f), max));
  Quantised out;
  out.scale = _mm_mask_mov_ps(_mm_set1_ps(__builtin_nanf("")), finite,
                              _mm_maskz_mul_ps(usable, max, _mm_set1_ps(1.0f / 127.0f)));
  // In a block without a usable scale a value times 0 is 0 or NaN, and NaN converts to 0x80000000,
  // of which the low byte is 0 as well.
  __m256i sums[kBatch];
  VIVACE_UNROLL
  for (int j = 0; j < kBatch; ++j) {
    const __m512 inverse = _mm512_permutexvar_ps(_mm512_set1_epi32(j), inverses);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x[j][0], inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x[j][1], inverse));
    out.q[j] = _mm256_set_m128i(_mm512_cvtepi32_epi8(q1), _mm512_cvtepi32_epi8(q0));
    sums[j] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), out.q[j]);
  }
  // Low half: sums of columns 0 .. 15 of the four blocks; high half: of columns 16 .. 31.
  const __m256i sums16 =
      _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  const __m128i sum0 = _mm256_castsi256_si128(sums16), sum1 = _mm256_extracti128_si256(sums16, 1);
  const __m128i sum = _mm_add_epi32(sum0, sum1), zero = _mm_setzero_si128();
  out.sum = _mm_mul_ps(out.scale, _mm_cvtepi32_ps(sum));
  out.minus[0] = _mm_sub_epi32(zero, sum);
  out.minus[1] = _mm_sub_epi32(zero, sum0);
  out.minus[2] = _mm_sub_epi32(zero, sum1);
  return out;
}

// The four are rows i .. i + count - 1 of one Int8Block<width>.
inline void StoreAsRows(const Quantised& in, int count, std::byte* block, int width, int i) {
  auto* const ints = reinterpret_cast<int32_t*>(block) + i;
  const auto mask = static_cast<__mmask8>((1 << count) - 1);
  const auto store = [&](int line, __m128i value) {
    auto* const p = ints + line * width;
    if (count == kBatch) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), value);
    } else {
      _mm_mask_storeu_epi32(p, mask, value);
    }
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
  store(8, _mm_castps_si128(in.scale));
  store(9, _mm_castps_si128(in.sum));
  for (int k = 0; k < 3; ++k) store(10 + k, in.minus[k]);
}

// The four are row `i` of `count` Int8Block<width>s in a row.
inline void StoreAsBlocks(const Quantised& in, int count, std::byte* blocks, int width, int i) {
  alignas(32) int32_t units[kBatch][kUnits];
  alignas(16) int32_t fields[5][kBatch];
  for (int j = 0; j < kBatch; ++j)
    _mm256_store_si256(reinterpret_cast<__m256i*>(units[j]), in.q[j]);
  const auto store = [](int32_t* p, __m128i v) {
    _mm_store_si128(reinterpret_cast<__m128i*>(p), v);
  };
  store(fields[0], _mm_castps_si128(in.scale));
  store(fields[1], _mm_castps_si128(in.sum));
  for (int k = 0; k < 3; ++k) store(fields[2 + k], in.minus[k]);
  for (int j = 0; j < count; ++j, blocks += static_cast<size_t>(width) * x86::kInt8BlockBytes) {
    auto* const ints = reinterpret_cast<int32_t*>(blocks) + i;
    for (int unit = 0; unit < kUnits; ++unit) ints[unit * width] = units[j][unit];
    for (int k = 0; k < 5; ++k) ints[(8 + k) * width] = fields[k][j];
  }
}

inline void LoadBlock(const GroupRows& in, int i, float inverse_rms, int block, __m512 (&x)[2]) {
  x[0] = LoadRow(in, i, inverse_rms, block * kBlockCols);
  x[1] = LoadRow(in, i, inverse_rms, block * kBlockCols + 16);
}

void PrepareInt8(const GroupRows& in, const float* inverse_rms) {
  const size_t block_bytes = static_cast<size_t>(in.width) * x86::kInt8BlockBytes;
  __m512 x[kBatch][2];
  for (int i = 0; i < in.width; i += kBatch) {
    const int rows = in.width - i < kBatch ? in.width - i : kBatch;
    std::byte* out = in.int8 + static_cast<size_t>(in.first_block) * block_bytes;
    if (rows == 1) {
      for (int b = in.first_block; b < in.last_block; b += kBatch, out += kBatch * block_bytes) {
        const int count = in.last_block - b < kBatch ? in.last_block - b : kBatch;
        for (int j = 0; j < kBatch; ++j) {
          LoadBlock(in, i, inverse_rms[i], j < count ? b + j : b, x[j]);
        }
        StoreAsBlocks(Quantise(x), count, out, in.width, i);
      }
      continue;
    }
    for (int b = in.first_block; b < in.last_block; ++b, out += block_bytes) {
      for (int j = 0; j < kBatch; ++j) {
        const int row = j < rows ? i + j : i;
        LoadBlock(in, row, inverse_rms[row], b, x[j]);
      }
      StoreAsRows(Quantise(x), rows, out, in.width, i);
    }
  }
}

// Row `i` of an Fp32Block<width>.
void StoreFp32(__m512 x0, __m512 x1, std::byte* block, int width, int i) {
  alignas(64) float values[kBlockCols];
  _mm512_store_ps(values, x0);
  _mm512_store_ps(values + 16, x1);
  auto* out = reinterpret_cast<float*>(block) + i;
  for (int k = 0; k < kBlockCols; ++k) out[k * width] = values[k];
}

void PrepareFp32(const GroupRows& in, const float* inverse_rms) {
  __m512 x[2];
  for (int i = 0; i < in.width; ++i) {
    for (int b = in.first_block; b < in.last_block; ++b) {
      const size_t block = static_cast<size_t>(b) * static_cast<size_t>(in.width);
      LoadBlock(in, i, inverse_rms[i], b, x);
      StoreFp32(x[0], x[1], in.fp32 + block * x86::kFp32BlockBytes, in.width, i);
    }
  }
}

void Prepare(const GroupRows& in) {
  float inverse_rms[kMaxWidth] = {};
  for (int i = 0; in.norm_weight && i < in.width; ++i) {
    inverse_rms[i] = InverseRms(in.rows[i], in.cols, in.norm_eps);
  }
  if (in.int8) PrepareInt8(in, inverse_rms);
  if (in.fp32) PrepareFp32(in, inverse_rms);
}

// ---- epilogues ----------------------------------------------------------------------------------

// e^x: 2^n * p(r), |r| <= ln(2) / 2. Relative error under 2e-7; saturates instead of overflowing.
inline __m512 Exp(__m512 x) {
  // Operand order matters: min and max return the second when one is NaN.
  x = _mm512_max_ps(_mm512_set1_ps(-87.0f), _mm512_min_ps(_mm512_set1_ps(88.0f), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.0f / 720);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

// x / (1 + e^-t)
inline __m512 MulSigmoid(__m512 x, __m512 t) {
  const __m512 one = _mm512_set1_ps(1.0f);
  return _mm512_div_ps(x, _mm512_add_ps(one, Exp(_mm512_sub_ps(_mm512_setzero_ps(), t))));
}

inline __m512 Silu(__m512 x) { return MulSigmoid(x, x); }

// 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
inline __m512 GeluTanh(__m512 x) {
  const __m512 cubic = _mm512_mul_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(0.044715f));
  const __m512 u = _mm512_mul_ps(_mm512_fmadd_ps(cubic, x, x), _mm512_set1_ps(1.5957691216f));
  return MulSigmoid(x, u);
}

inline __m512 LoadBias(const float* bias, __mmask16 mask) {
  return bias ? _mm512_maskz_loadu_ps(mask, bias) : _mm512_setzero_ps();
}

void Store(const float* c, const float* bias, const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 b = LoadBias(bias, mask);
  for (int i = 0; i < out.width; ++i) {
    _mm512_mask_storeu_ps(out.out + i * out.stride, mask, _mm512_add_ps(Load(c + 16 * i), b));
  }
}

void Add(const float* c, const float* bias, const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 b = LoadBias(bias, mask);
  for (int i = 0; i < out.width; ++i) {
    float* const p = out.out + i * out.stride;
    const __m512 before = _mm512_maskz_loadu_ps(mask, p);
    _mm512_mask_storeu_ps(p, mask, _mm512_add_ps(before, _mm512_add_ps(Load(c + 16 * i), b)));
  }
}

template <__m512 (*kActivation)(__m512)>
void ActivationMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                   const TileOut& out) {
  const __mmask16 mask = FirstLanes(out.valid);
  const __m512 gate_b = LoadBias(gate_bias, mask), up_b = LoadBias(up_bias, mask);
  for (int i = 0; i < out.width; ++i) {
    const __m512 g = _mm512_add_ps(Load(gate + 16 * i), gate_b);
    const __m512 u = _mm512_add_ps(Load(up + 16 * i), up_b);
    _mm512_mask_storeu_ps(out.out + i * out.stride, mask, _mm512_mul_ps(kActivation(g), u));
  }
}

}  // namespace
}  // namespace vivace::kernels::avx512

namespace vivace::kernels::x86 {

#define VIVACE_WIDTHS(tile, block)                                               \
  {                                                                              \
    nullptr, avx512::Multiply<tile, block, 1>, avx512::Multiply<tile, block, 2>, \
        avx512::Multiply<tile, block, 3>, avx512::Multiply<tile, block, 4>,      \
        avx512::Multiply<tile, block, 5>, avx512::Multiply<tile, block, 6>,      \
        avx512::Multiply<tile, block, 7>, avx512::Multiply<tile, block, 8>,      \
        avx512::Multiply<tile, block, 9>, avx512::Multiply<tile, block, 10>,     \
        avx512::Multiply<tile, block, 11>, avx512::Multiply<tile, block, 12>     \
  }

constinit const TierKernels kAvx512Kernels = {
    .max_width = avx512::kMaxWidth,
    .multiply = {VIVACE_WIDTHS(TileF32, Fp32Block), VIVACE_WIDTHS(TileF16, Fp32Block),
                 VIVACE_WIDTHS(TileBF16, Fp32Block), VIVACE_WIDTHS(TileQ4_0, Int8Block),
                 VIVACE_WIDTHS(TileQ4_1, Int8Block), VIVACE_WIDTHS(TileQ8_0, Int8Block),
                 VIVACE_WIDTHS(TileQ6_K, Int8Block)},
    .prepare = avx512::Prepare,
    .store = avx512::Store,
    .add = avx512::Add,
    .silu_mul = avx512::ActivationMul<avx512::Silu>,
    .gelu_tanh_mul = avx512::ActivationMul<avx512::GeluTanh>,
};

#undef VIVACE_WIDTHS

}  // namespace vivace::kernels::x86
