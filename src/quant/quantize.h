// Rows of fp32 into a weight format, and rows of one format into another, at load. Scalar. Any
// thread. Quantised types are rounded to the nearest of the block's own grid, as ggml's reference
// quantisers do; no calibration data, no search for a better scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace vivace::quant {

// F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1.
bool CanQuantize(DType dtype);

// "q8_0", "q4_0", "q4_1", "q5_0", "q5_1": what --quantization takes. Nothing: another name.
std::optional<DType> ParseQuantization(std::string_view name);

// data[0 .. RowBytes(elems)) = `values` as `dtype`, which CanQuantize. `elems` is a multiple of its
// block. Values that are not finite give NaN or garbage in their block, never a fault.
void QuantizeRow(DType dtype, const float* values, int64_t elems, std::byte* data);

// MXFP4 and IQ4_XS, whose values are small integers times a scale for each 32, as Q8_0: the same
// integers. MXFP4 is exact while its scale is one of fp16, 2^-24 to 2^15: smaller blocks become
// zeros. A larger one cannot be told: false, and the row is not whole. IQ4_XS' scales are rounded
// to fp16, by 2^-12 of themselves at most.
bool RepackAsQ8_0(DType from, const std::byte* data, int64_t elems, std::byte* out);

}  // namespace vivace::quant
