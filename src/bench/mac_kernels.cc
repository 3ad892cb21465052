#include "bench/mac_kernels.h"

#include <immintrin.h>

#include <array>
#include <cstring>

#include "base/cpu.h"
#include "bench/mac_chains_impl.h"

namespace vivace::bench {
namespace {

bool Avx2() { return Supported(Isa::kAvx2); }
bool AvxVnni() { return Supported(Isa::kAvxVnni); }
bool Avx512() { return Supported(Isa::kAvx512); }
bool Avx512Bf16() { return Supported(Isa::kAvx512Bf16); }
bool Always() { return true; }

constexpr int kXmmChains = 12;

void Fp32Xmm(int64_t steps) {
  __m128 u = _mm_set1_ps(1.5f), v = _mm_set1_ps(0.25f);
  Opaque(v);
  const auto step = [&](__m128 a) {
    Opaque(u);  // a new value each time, or the product would be taken out of the loop
    return _mm_add_ps(a, _mm_mul_ps(u, v));
  };
  RunChains(steps, _mm_setzero_ps(), step, std::make_index_sequence<kXmmChains>());
}

constexpr std::array<MacKernel, kMacKinds> kKernels = {{
    {MacKind::kFp32Xmm, "mulps+addps xmm", kXmmChains * 4, Fp32Xmm, Always},
    {MacKind::kFp32Ymm, "fp32 FMA ymm", kVexChains * 8, avx2::Fp32Ymm, Avx2},
    {MacKind::kMaddubsYmm, "vpmaddubsw ymm", kVexChains * 32, avx2::MaddubsYmm, Avx2},
    {MacKind::kDpbusdVex, "vpdpbusd ymm VEX", kVexChains * 32, avxvnni::DpbusdVex, AvxVnni},
    {MacKind::kFp32Zmm, "fp32 FMA zmm", kEvexChains * 16, avx512::Fp32Zmm, Avx512},
    {MacKind::kDpbusdYmm, "vpdpbusd ymm", kEvexChains * 32, avx512::DpbusdYmm, Avx512},
    {MacKind::kDpbusdZmm, "vpdpbusd zmm", kEvexChains * 64, avx512::DpbusdZmm, Avx512},
    {MacKind::kDpbf16Zmm, "vdpbf16ps zmm", kEvexChains * 32, avx512bf16::Dpbf16Zmm, Avx512Bf16},
}};

uint64_t ReadWords(const void* data, int64_t bytes) {
  uint64_t all = 0, word;
  for (int64_t at = 0; at < bytes; at += 8) {
    std::memcpy(&word, static_cast<const char*>(data) + at, sizeof(word));
    all |= word;
  }
  return all;
}

}  // namespace

std::span<const MacKernel> MacKernels() { return kKernels; }

uint64_t ReadStreams(const void* data, int64_t bytes) {
  if (Avx512()) return avx512::ReadStreams(data, bytes);
  if (Avx2()) return avx2::ReadStreams(data, bytes);
  return ReadWords(data, bytes);
}

uint64_t ReadPrefetched(const void* data, int64_t bytes) {
  if (Avx512()) return avx512::ReadPrefetched(data, bytes);
  if (Avx2()) return avx2::ReadPrefetched(data, bytes);
  return ReadWords(data, bytes);
}

}  // namespace vivace::bench
