// Tile kernels of the AVX-512 VNNI tier. One zmm holds 16 outputs of one row.
//
// Every kernel, whatever its width, does for each output the same float operations in the same
// order: block by block, the exact integer (or 32-step fp32) sum, then its scaling into one fp32
// accumulator. That is what makes a row's result independent of the rows beside it.
//
// One group of rows is multiplied while a panel's integers are unpacked, in registers. Several
// share that work: the first leaves a stretch of the panel unpacked in first-level cache, and the
// others pass over it.
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

// By what the arithmetic is, not by format: Q4_1 and Q4_K unpack into the same.
template <typename Tile>
using KindOfTile = KindOf<BlockOf<Tile>::kKind, BlockOf<Tile>::kOffsetBits>;

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

// One block, but for its minimums.
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
}

// What the minimums of a stretch that begins at rows[0] add.
template <int kWidth>
inline void AddMinimums(const Minimums& minimums, const ScaledBlock<kWidth>* rows,
                        __m512 (&f)[kWidth]) {
  const int32_t(*pair)[16] = minimums.pair;
  for (int part = 0; part < minimums.parts; ++part) {
    __m512i acc[kWidth];
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) acc[i] = _mm512_setzero_si512();
    for (int k = 0; k < minimums.pairs_per_part; ++k, ++pair, rows += 2) {
      const __m512i m = _mm512_load_si512(*pair);
      VIVACE_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        acc[i] = _mm512_dpwssd_epi32(acc[i], m, _mm512_set1_epi32(rows->sums[i]));
      }
    }
    const __m512 scale = _mm512_load_ps(minimums.scale[part]);
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      f[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[i]), scale, f[i]);
    }
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

// How a panel is cut into stretches: by its columns alone, so that every kernel does the same. They
// begin at a tile and at an even block.
template <typename Tile>
class Stretches {
 public:
  explicit Stretches(int blocks)
      : blocks_(blocks),
        units_((blocks + kUnit - 1) / kUnit),
        count_((units_ + kMaxUnits - 1) / kMaxUnits) {}

  int count() const { return count_; }
  // The first block of stretch `s`.
  int First(int s) const { return s == count_ ? blocks_ : units_ * s / count_ * kUnit; }

 private:
  static constexpr int kUnit = Tile::kBlocks == 1 ? 2 : Tile::kBlocks;
  static constexpr int kMaxUnits = kStretchBlocks / kUnit;
  int blocks_, units_, count_;
};

// Asks for what lies some way behind a block of a panel, at the end in the next panel. From
// kMinPrefetchWidth rows on that gains a fifth or more; with fewer, memory limits, and it costs.
// Into the second level: what goes into the first waits for one of few buffers.
constexpr int kMinPrefetchWidth = 6;
constexpr size_t kPrefetchBytes = 5 << 10;
template <typename Tile>
inline void PrefetchBehind(const Tile* tiles, int block) {
  constexpr size_t kBlockBytes = sizeof(Tile) / Tile::kBlocks;
  const auto* const p = reinterpret_cast<const char*>(tiles) +
                        static_cast<size_t>(block) * kBlockBytes + kPrefetchBytes;
  VIVACE_UNROLL
  for (size_t k = 0; k < kBlockBytes; k += 64) _mm_prefetch(p + k, _MM_HINT_T1);
}

template <typename Tile, int kWidth>
void MultiplyInt8(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const Tile*>(panel);
  const auto* rows = reinterpret_cast<const ScaledBlock<kWidth>*>(group);
  const Stretches<Tile> stretches(blocks);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) f[i] = _mm512_setzero_ps();
  __mmask16 bad = 0;
  for (int s = 0; s < stretches.count(); ++s) {
    const int first = stretches.First(s), last = stretches.First(s + 1);
    for (int b = first; b < last; ++b) {
      if constexpr (kWidth >= kMinPrefetchWidth) PrefetchBehind(tiles, b);
      Step(BlockOf<Tile>(tiles[b / Tile::kBlocks], b % Tile::kBlocks), rows[b], f, bad);
    }
    if constexpr (BlockOf<Tile>::kKind == BlockKind::kMinimum) {
      Minimums minimums;
      bad |= FillMinimums(tiles, first, last, minimums);
      AddMinimums(minimums, rows + first, f);
    }
  }
  Finish(rows + blocks, f, bad, c);
}

// ---- int8 blocks, many groups -------------------------------------------------------------------

template <typename Kind>
struct Stretch {
  Unpacked<Kind> weights[kStretchBlocks];
  Minimums minimums;  // of the kind that has them
  int first, last;    // blocks of the panel
  int blocks;         // that the panel has
  __mmask16 bad = 0;  // of the blocks up to `last`
};

// One group times a stretch. `unpack(b)` is called before block b is used, and `read_minimums`
// after all of them: memory likes to be read in order.
template <typename Kind, int kWidth, typename UnpackBlock, typename ReadMinimums>
inline void MultiplyStretch(Stretch<Kind>& stretch, const std::byte* group, float* c,
                            const UnpackBlock& unpack, const ReadMinimums& read_minimums) {
  const auto* rows = reinterpret_cast<const ScaledBlock<kWidth>*>(group);
  __m512 f[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    f[i] = stretch.first == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(c + 16 * i);
  }
  for (int b = stretch.first; b < stretch.last; ++b) {
    unpack(b);
    __mmask16 unused;
    Step(UnpackedBlock<Kind>(stretch.weights[b - stretch.first]), rows[b], f, unused);
  }
  if constexpr (Kind::kKind == BlockKind::kMinimum) {
    read_minimums();
    AddMinimums(stretch.minimums, rows + stretch.first, f);
  }
  if (stretch.last == stretch.blocks) {
    Finish(rows + stretch.blocks, f, stretch.bad, c);
    return;
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) _mm512_storeu_ps(c + 16 * i, f[i]);
}

// The first group unpacks a stretch, in the shadow of its products; the others find it so.
template <typename Tile, int kWidth>
void MultiplyFirst(const Tile* tiles, Stretch<KindOfTile<Tile>>& stretch, const std::byte* group,
                   float* c) {
  const auto unpack = [&](int b) {
    PrefetchBehind(tiles, b);
    const BlockOf<Tile> block(tiles[b / Tile::kBlocks], b % Tile::kBlocks);
    stretch.bad |= Unpack(block, stretch.weights[b - stretch.first]);
  };
  const auto read_minimums = [&] {
    if constexpr (KindOfTile<Tile>::kKind == BlockKind::kMinimum) {
      stretch.bad |= FillMinimums(tiles, stretch.first, stretch.last, stretch.minimums);
    }
  };
  MultiplyStretch<KindOfTile<Tile>, kWidth>(stretch, group, c, unpack, read_minimums);
}
template <typename Kind, int kWidth>
void MultiplyNext(Stretch<Kind>& stretch, const std::byte* group, float* c) {
  MultiplyStretch<Kind, kWidth>(
      stretch, group, c, [](int) {}, [] {});
}

template <typename Tile>
struct RunKernels {
  using Kind = KindOfTile<Tile>;
  void (*first[kMaxWidth + 1])(const Tile*, Stretch<Kind>&, const std::byte*, float*) = {};
  void (*next[kMaxWidth + 1])(Stretch<Kind>&, const std::byte*, float*) = {};

  template <int... kWidths>
  constexpr explicit RunKernels(std::integer_sequence<int, kWidths...>)
      : first{nullptr, MultiplyFirst<Tile, kWidths + 1>...},
        next{nullptr, MultiplyNext<Kind, kWidths + 1>...} {}
};

template <typename Tile>
void MultiplyRun(const std::byte* panel, const GroupRun& run, int blocks,
                 const x86::GroupDone& done, float* c) {
  static constexpr RunKernels<Tile> kKernels(std::make_integer_sequence<int, kMaxWidth>{});
  const auto* const tiles = reinterpret_cast<const Tile*>(panel);
  const Stretches<Tile> stretches(blocks);
  Stretch<KindOfTile<Tile>> stretch;
  stretch.blocks = blocks;
  for (int s = 0; s < stretches.count(); ++s) {
    stretch.first = stretches.First(s);
    stretch.last = stretches.First(s + 1);
    const std::byte* group = run.data;
    float* out = c;
    for (int g = 0; g < run.count; ++g) {
      const int width = run.Width(g);
      if (g == 0) {
        kKernels.first[width](tiles, stretch, group, out);
      } else {
        kKernels.next[width](stretch, group, out);
      }
      group += width * run.row_bytes;
      if (done.call && s + 1 == stretches.count()) done.call(done.context, g, out);
      // Sums that no one waits for any more leave their place to the next group's.
      if (!done.call || stretches.count() > 1) out += 16 * width;
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
