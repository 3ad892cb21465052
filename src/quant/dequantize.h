// Rows of any weight format to fp32: the meaning of each format, in one place.
// Scalar, for load time and the reference kernels. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace vivace::quant {

// out[0 .. elems) = the values at `data`, which needs no alignment. `elems` is a multiple of the
// format's block. Every bit pattern is accepted; NaN scales give NaN values.
void DequantizeRow(DType dtype, const std::byte* data, int64_t elems, float* out);

}  // namespace vivace::quant
