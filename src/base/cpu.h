// What this machine can do: instruction tiers and the processors we may really use.
#pragma once

#include <optional>
#include <string_view>

namespace vivace {

// Instruction tiers of the compute kernels, low to high. A tier's results are bit-identical on
// every machine that has it; tiers differ from each other by rounding.
enum class Isa {
  kReference,  // scalar fp32 throughout: the oracle
  kAvx2,       // AVX2 + FMA + F16C, int8 activations
  kAvx512,     // AVX-512 F/BW/VL/DQ + VNNI, int8 activations
};

std::string_view Name(Isa isa);                      // "reference", "avx2", "avx512"
std::optional<Isa> ParseIsa(std::string_view name);  // "auto" is not an Isa
bool Supported(Isa isa);                             // cpuid and OS state (xgetbv)
Isa BestIsa();

// Processors this process may use at once: the affinity mask cut by the cgroup CPU quota; at
// least 1.
int UsableCpus();

}  // namespace vivace
