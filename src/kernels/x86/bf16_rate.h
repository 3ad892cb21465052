// How fast the machine's bf16 dot products are.
#pragma once

namespace vivace::kernels::x86 {

// Multiply-adds per second by vdpbf16ps over those by fp32 FMA, both from registers. The machine
// must have AVX512_BF16. Takes some 300 us.
double Bf16DotRate();

}  // namespace vivace::kernels::x86
