// What the 256-bit tiers do beside products: rows into blocks of activations, and tiles of results
// into rows, as TierKernels declares them. Built for AVX2, FMA and F16C.
#pragma once

#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx2 {

void Prepare(const x86::GroupRows& rows);
void Store(const float* c, const float* bias, const x86::TileOut& out);
void Add(const float* c, const float* bias, const x86::TileOut& out);
void SiluMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
             const x86::TileOut& out);
void GeluTanhMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                 const x86::TileOut& out);
void FoldBest(const float* c, const float* bias, int width, int valid, int32_t first_id,
              x86::Best* best);

}  // namespace vivace::kernels::avx2
