// The loop under every instruction's kernel. For mac_kernels_*.cc only, each of which is built with
// flags of its own: everything has internal linkage, so that the linker never keeps one file's copy
// for another.
#pragma once

#include <cstdint>
#include <utility>

namespace vivace::bench {
namespace {

// The value as something the compiler must have, and knows nothing about.
template <typename Vector>
inline void Opaque(Vector& value) {
  __asm__ volatile("" : "+v"(value));
}

// acc[k] = step(acc[k]) for all chains, `steps` times. Indices are constants, so that the chains
// live in registers: with a loop over k GCC 12 keeps the array in memory and measures its loads.
template <typename Vector, typename Step, std::size_t... kChain>
inline void RunChains(int64_t steps, Vector zero, Step step, std::index_sequence<kChain...>) {
  Vector acc[] = {((void)kChain, zero)...};
  for (int64_t i = 0; i < steps; ++i) ((acc[kChain] = step(acc[kChain]), Opaque(acc[kChain])), ...);
}

}  // namespace
}  // namespace vivace::bench
