// What each multiply-add instruction can do at its best: independent chains of it from registers,
// no loads, nothing else. One function per instruction, in a file built for that instruction.
//
// A chain's end is an operand of an empty assembly statement in every step, so a compiler can
// neither drop a chain nor hoist one out of the loop (leaving out a chain that nobody reads is how
// such a probe comes to promise a third more than the machine has).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vivace::bench {

enum class MacKind : uint8_t {
  kFp32Xmm,     // mulps + addps: what the scalar tier can come to at best
  kFp32Ymm,     // FMA
  kMaddubsYmm,  // vpmaddubsw + vpmaddwd + vpaddd
  kDpbusdVex,   // AVX-VNNI, ymm
  kFp32Zmm,     // FMA
  kDpbusdYmm,   // AVX-512 VNNI
  kDpbusdZmm,   // AVX-512 VNNI
  kDpbf16Zmm,   // AVX-512 BF16
};
inline constexpr int kMacKinds = 8;

struct MacKernel {
  MacKind kind;
  std::string_view name;       // "vpdpbusd zmm"
  int64_t macs_per_step;       // of all chains
  void (*run)(int64_t steps);  // at least one
  bool (*supported)();
};

// One row per kind, in the order of MacKind. Static storage.
std::span<const MacKernel> MacKernels();

// Reads `bytes` at `data` once (a multiple of kReadGranule, 64-byte aligned) in the widest loads
// the machine has. Two ways, because which is faster differs between machines: four streams a page
// apart, and one stream with prefetches. Returns a value made of all that was read.
inline constexpr int64_t kReadGranule = 16'384;
uint64_t ReadStreams(const void* data, int64_t bytes);
uint64_t ReadPrefetched(const void* data, int64_t bytes);

// The pieces of the tables above; call through them.
namespace avx2 {
void Fp32Ymm(int64_t steps);
void MaddubsYmm(int64_t steps);
uint64_t ReadStreams(const void* data, int64_t bytes);
uint64_t ReadPrefetched(const void* data, int64_t bytes);
}  // namespace avx2
namespace avxvnni {
void DpbusdVex(int64_t steps);
}
namespace avx512 {
void Fp32Zmm(int64_t steps);
void DpbusdYmm(int64_t steps);
void DpbusdZmm(int64_t steps);
uint64_t ReadStreams(const void* data, int64_t bytes);
uint64_t ReadPrefetched(const void* data, int64_t bytes);
}  // namespace avx512
namespace avx512bf16 {
void Dpbf16Zmm(int64_t steps);
}

inline constexpr int kVexChains = 12;  // sixteen registers less two operands and a temporary or two
inline constexpr int kEvexChains = 24;  // thirty-two registers

}  // namespace vivace::bench
