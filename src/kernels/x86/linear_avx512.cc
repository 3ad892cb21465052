// Tile kernels of the AVX-512 VNNI tier. One zmm holds 16 outputs of one row.
//
// Every kernel, whatever its width, does for each output the same float operations in the same
// order: block by block, the exact integer (or 32-step fp32) sum, then its scaling into one fp32
// accumulator. That is what makes a row's result independent of the rows beside it.
//
// A few rows are multiplied while a panel's integers are unpacked, in registers. More rows than one
// group share that work: a stretch of the panel is unpacked into first-level cache and all groups
// pass over it.
#include <immintrin.h>

#include <array>
#include <utility>

#include "kernels/x86/linear_blocks_avx512_impl.h"
#include "kernels/x86/linear_rows_avx512.h"
#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx512 {
namespace {

using x86::Fp32Block;
using x86::GroupRun;
using x86::kBlockCols;
using x86::TileKernel;

constexpr int kMaxWidth = 12;  // 12 integer and 12 float accumulators of 32 registers

// ---- int8 blocks --------------------------------------------------------------------------------

// acc[i] = minus[i] << shift: the integers' offset, 2^shift, times the sum of the activations.
template <int kWidth>
inline void StartAt(const int32_t (&minus)[kWidth], int shift, __m512i (&acc)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_slli_epi32(_mm512_set1_epi32(minus[i]), shift);
}

// acc[i] += the products of a unit.
template <int kWidth>
inline void Dot(__m512i w, const int32_t (&q)[kWidth], __m512i (&acc)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], w, _mm512_set1_epi32(q[i]));
}

// f[i] += d * a.scale[i] * acc[i]. With a table, d * a.scale[i] is looked up and its exponent
// added; without, for a few rows, it is multiplied: the same bits.
template <int kWidth>
inline void Scale(const ScaleTable& d, const ScaledBlock<kWidth>& a, const __m512i (&acc)[kWidth],
                  __m512 (&f)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const __m512i scale = _mm512_add_epi32(_mm512_load_si512(d.step[StepOf(a.scale[i])]),
                                           _mm512_set1_epi32(a.scale[i]));
    f[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[i]), _mm512_castsi512_ps(scale), f[i]);
  }
}
template <int kWidth>
inline void Scale(__m512 d, const ScaledBlock<kWidth>& a, const __m512i (&acc)[kWidth],
                  __m512 (&f)[kWidth]) {
  d = NotZero(d);
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const __m512 scale = _mm512_mul_ps(d, _mm512_castsi512_ps(_mm512_set1_epi32(a.scale[i])));
    f[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[i]), scale, f[i]);
  }
}

inline __mmask16 NotFinite(__m512 d) {
  constexpr int kNanOrInfinity = 0x99;
  return _mm512_fpclass_ps_mask(d, kNanOrInfinity);
}

// One block. `bad` takes in the outputs of which a scale is not finite.
template <typename Block, int kWidth>
inline void Step(const Block& w, const ScaledBlock<kWidth>& a, __m512 (&f)[kWidth],
                 __mmask16& bad) {
  __m512i acc[kWidth];
  if constexpr (Block::kKind == BlockKind::kHalves) {
    VIVACE_UNROLL
    for (int half = 0; half < 2; ++half) {
      StartAt(a.minus16[half], Block::kOffsetBits, acc);
      VIVACE_UNROLL
      for (int k = 0; k < 4; ++k) Dot(w.Unit(half, k), a.q[4 * half + k], acc);
      if constexpr (!Block::kChecked) bad |= NotFinite(w.Scale(half));
      Scale(w.Scale(half), a, acc, f);
    }
    return;
  }
  if constexpr (Block::kKind == BlockKind::kMinimum) {
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_setzero_si512();
  } else {
    StartAt(a.minus, Block::kOffsetBits, acc);
  }
  VIVACE_UNROLL
  for (int k = 0; k < 4; ++k) {
    Dot(w.Unit(0, k), a.q[k], acc);
    Dot(w.Unit(1, k), a.q[4 + k], acc);
  }
  if constexpr (!Block::kChecked) bad |= NotFinite(w.Scale(0));
  Scale(w.Scale(0), a, acc, f);
  if constexpr (Block::kKind == BlockKind::kMinimum) {
    const __m512 m = w.Minimum();
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) f[i] = _mm512_fmadd_ps(m, _mm512_set1_ps(a.sum[i]), f[i]);
  }
}

// The sums of a group, times its rows' scales.
template <int kWidth>
inline void Finish(const ScaledBlock<kWidth>* end, const __m512 (&f)[kWidth], __mmask16 bad,
                   float* c) {
  const auto* const scale = reinterpret_cast<const float*>(end);
  const __m512 one =
      _mm512_mask_blend_ps(bad, _mm512_set1_ps(1.0f), _mm512_set1_ps(__builtin_nanf("")));
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    _mm512_storeu_ps(c + 16 * i, _mm512_mul_ps(f[i], _mm512_mul_ps(one, _mm512_set1_ps(scale[i]))));
  }
}

template <typename Tile, int kWidth>
void MultiplyInt8(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const Tile*>(panel);
  const auto* rows = reinterpret_cast<const ScaledBlock<kWidth>*>(group);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_setzero_ps();
  __mmask16 bad = 0;
  for (int t = 0; t < blocks / Tile::kBlocks; ++t) {
    for (int b = 0; b < Tile::kBlocks; ++b, ++rows) Step(BlockOf<Tile>(tiles[t], b), *rows, f, bad);
  }
  Finish(rows, f, bad, c);
}

// ---- int8 blocks, many groups -------------------------------------------------------------------

// A stretch of blocks unpacked: half of a small first-level cache, the rest is for activations.
constexpr int kStretchBlocks = 18;

template <typename Kind>
struct Stretch {
  const Unpacked<Kind>* weights;
  int first, last, blocks;  // of the panel
  __mmask16 bad;            // of the blocks up to `last`
};

template <typename Kind>
using StretchKernel = void (*)(const Stretch<Kind>& stretch, const std::byte* group, float* c);

template <typename Kind, int kWidth>
void MultiplyStretch(const Stretch<Kind>& stretch, const std::byte* group, float* c) {
  const auto* rows = reinterpret_cast<const ScaledBlock<kWidth>*>(group);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    f[i] = stretch.first == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(c + 16 * i);
  }
  for (int b = stretch.first; b < stretch.last; ++b) {
    __mmask16 unused;
    Step(UnpackedBlock<Kind>(stretch.weights[b - stretch.first]), rows[b], f, unused);
  }
  if (stretch.last == stretch.blocks) {
    Finish(rows + stretch.blocks, f, stretch.bad, c);
    return;
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) _mm512_storeu_ps(c + 16 * i, f[i]);
}

template <typename Kind, int... kWidths>
constexpr std::array<StretchKernel<Kind>, kMaxWidth + 1> StretchKernels(
    std::integer_sequence<int, kWidths...>) {
  return {nullptr, MultiplyStretch<Kind, kWidths + 1>...};
}

template <typename Tile>
void MultiplyRun(const std::byte* panel, const GroupRun& run, int blocks,
                 const x86::GroupDone& done, float* c) {
  using Block = BlockOf<Tile>;
  // By what the arithmetic is, not by format: Q4_1 and Q4_K unpack into the same.
  using Kind = KindOf<Block::kKind, Block::kOffsetBits>;
  static constexpr auto kKernels =
      StretchKernels<Kind>(std::make_integer_sequence<int, kMaxWidth>());
  const auto* const tiles = reinterpret_cast<const Tile*>(panel);
  const int stretches = (blocks + kStretchBlocks - 1) / kStretchBlocks;
  Unpacked<Kind> weights[kStretchBlocks];
  Stretch<Kind> stretch{weights, 0, 0, blocks, 0};
  for (int s = 1; s <= stretches; ++s) {
    stretch.first = stretch.last;
    stretch.last = blocks * s / stretches;
    for (int b = stretch.first; b < stretch.last; ++b) {
      const Block block(tiles[b / Tile::kBlocks], b % Tile::kBlocks);
      Unpack(block, weights[b - stretch.first]);
      stretch.bad |= NotFinite(block.Scale(0));
      if constexpr (Block::kKind == BlockKind::kHalves) stretch.bad |= NotFinite(block.Scale(1));
    }
    const std::byte* group = run.data;
    float* out = c;
    for (int g = 0; g < run.count; ++g) {
      const int width = run.Width(g);
      kKernels[static_cast<size_t>(width)](stretch, group, out);
      group += width * run.row_bytes;
      if (done.call && s == stretches) done.call(done.context, g, out);
      // Sums that no one waits for any more leave their place to the next group's.
      if (!done.call || stretches > 1) out += 16 * width;
    }
  }
}

// ---- fp32 blocks --------------------------------------------------------------------------------

inline __m512 Column(const x86::TileF32& tile, int k) { return _mm512_loadu_ps(tile.w[k]); }
inline __m512 Column(const x86::TileF16& tile, int k) { return HalfToFloat(tile.w[k]); }
inline __m512 Column(const x86::TileBF16& tile, int k) {
  const __m512i both = _mm512_loadu_si512(tile.w[k / 2]);
  return _mm512_castsi512_ps(k % 2 ? _mm512_and_si512(both, _mm512_set1_epi32(~0xffff))
                                   : _mm512_slli_epi32(both, 16));
}

template <typename Tile, int kWidth>
void MultiplyFp32(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const Tile*>(panel);
  const auto* rows = reinterpret_cast<const Fp32Block<kWidth>*>(group);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
    __m512 acc[kWidth];
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int k = 0; k < kBlockCols; ++k) {
      const __m512 w = Column(tiles[b], k);
      VIVACE_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        acc[i] = _mm512_fmadd_ps(w, _mm512_set1_ps(rows[b].x[k][i]), acc[i]);
      }
    }
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) f[i] = _mm512_add_ps(f[i], acc[i]);
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) _mm512_storeu_ps(c + 16 * i, f[i]);
}

// ---- the table ----------------------------------------------------------------------------------

template <typename Tile, int kWidth = kMaxWidth>
constexpr void SetFormat(x86::TierKernels& kernels) {
  if constexpr (x86::TakesInt8(Tile::kFormat)) {
    kernels.multiply[Tile::kFormat][kWidth] = MultiplyInt8<Tile, kWidth>;
    // Bytes need no unpacking.
    if (Tile::kFormat != x86::kQ8_0) kernels.multiply_run[Tile::kFormat] = MultiplyRun<Tile>;
  } else {
    kernels.multiply[Tile::kFormat][kWidth] = MultiplyFp32<Tile, kWidth>;
  }
  if constexpr (kWidth > 1) SetFormat<Tile, kWidth - 1>(kernels);
}

template <typename... Tiles>
constexpr x86::TierKernels MakeKernels() {
  x86::TierKernels kernels = {
      .max_width = kMaxWidth,
      .multiply = {},
      .prepare = Prepare,
      .store = Store,
      .add = Add,
      .silu_mul = SiluMul,
      .gelu_tanh_mul = GeluTanhMul,
      .fold_best = FoldBest,
  };
  (SetFormat<Tiles>(kernels), ...);
  return kernels;
}

}  // namespace
}  // namespace vivace::kernels::avx512

namespace vivace::kernels::x86 {

constinit const TierKernels kAvx512Kernels =
    avx512::MakeKernels<TileF32, TileF16, TileBF16, TileQ4_0, TileQ4_1, TileQ5_0, TileQ5_1,
                        TileQ8_0, TileQ4_K, TileQ5_K, TileQ6_K>();

}  // namespace vivace::kernels::x86
