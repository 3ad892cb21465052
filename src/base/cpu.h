// What this machine can do: instruction tiers and the processors we may really use.
#pragma once

#include <optional>
#include <string_view>

namespace vivace {

// Instruction tiers of the compute kernels, low to high. A tier's results are bit-identical on
// every machine that has it; tiers differ from each other by rounding.
enum class Isa {
  kReference,   // scalar fp32 throughout: the oracle
  kAvx2,        // AVX2 + FMA + F16C, int8 activations
  kAvxVnni,     // the same and AVX-VNNI: the bits of kAvx2, sooner
  kAvx512,      // AVX-512 F/BW/VL/DQ + VNNI, int8 activations
  kAvx512Bf16,  // the same and AVX512_BF16: dot products of bf16 where values are bf16
};
inline constexpr Isa kIsas[] = {Isa::kReference, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512,
                                Isa::kAvx512Bf16};

// "reference", "avx2", "avxvnni", "avx512", "avx512bf16"
std::string_view Name(Isa isa);
std::optional<Isa> ParseIsa(std::string_view name);  // "auto" is not an Isa
bool Supported(Isa isa);                             // cpuid and OS state (xgetbv)

// The highest that is supported, up to kAvx512: there are processors on which bf16 dot products are
// slower than fp32 multiply-adds, so whether to go higher is to be measured.
Isa BestIsa();

// Processors this process may use at once: the affinity mask cut by the cgroup CPU quota; at
// least 1.
int UsableCpus();

}  // namespace vivace
