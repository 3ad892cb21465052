#include "model/materialize.h"

#include <cstring>

#include "quant/blocks.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace vivace::model {
namespace {

constexpr int kMxBlock = 32;  // values that share a scale

bool IsFloat(DType dtype) { return Info(dtype).block_elems == 1; }

uint64_t Elements(const WeightSource& source) {
  const uint64_t elements = source.tensor->elements;
  return source.scales == nullptr ? elements : elements * 2;  // two values in a byte
}

// Values of one slice; the spec's rows are counted inside it.
uint64_t SliceElements(const WeightSource& source) {
  return Elements(source) / static_cast<uint64_t>(source.spec->slices);
}

// Of a transposed slice [inputs, outputs]: its outputs.
uint64_t TransposedOutputs(const WeightSource& source) { return source.tensor->shape.back(); }

// The first of `count` values that lie at `index` of the tensor, a multiple of the block.
const std::byte* At(const WeightSource& source, uint64_t index) {
  const DTypeInfo& info = Info(*source.tensor->dtype);
  const auto block = static_cast<uint64_t>(info.block_elems);
  return source.tensor->data.data() + index / block * static_cast<uint64_t>(info.block_bytes);
}

// Where output `i` is among the slice's rows.
uint64_t RowOf(const WeightSpec& spec, int32_t i) {
  return static_cast<uint64_t>(spec.first_row) + static_cast<uint64_t>(i % spec.row_block) +
         static_cast<uint64_t>(i / spec.row_block) * static_cast<uint64_t>(spec.row_stride);
}

uint64_t RowIndex(const WeightSource& source, int32_t row) {
  const WeightSpec& spec = *source.spec;
  return static_cast<uint64_t>(spec.slice) * SliceElements(source) +
         RowOf(spec, row) * static_cast<uint64_t>(spec.cols);
}

// A row of MXFP4 kept as two tensors, in ggml's blocks: there, a byte has values j and j + 16, here
// 2 j and 2 j + 1.
void JoinMxRow(const WeightSource& source, int32_t row, std::byte* out) {
  const uint64_t first = RowIndex(source, row);
  const std::byte* blocks = source.tensor->data.data() + first / 2;
  const std::byte* scales = source.scales->data.data() + first / kMxBlock;
  for (int32_t b = 0; b < source.spec->cols / kMxBlock; ++b) {
    uint8_t pairs[kMxBlock / 2];
    std::memcpy(pairs, blocks + b * static_cast<int64_t>(sizeof(pairs)), sizeof(pairs));
    const auto value = [&](int i) { return (pairs[i / 2] >> (4 * (i % 2))) & 15; };
    quant::MXFP4 block;
    block.e = static_cast<uint8_t>(scales[b]);
    for (int j = 0; j < kMxBlock / 2; ++j) {
      block.qs[j] = static_cast<uint8_t>(value(j) | value(j + kMxBlock / 2) << 4);
    }
    std::memcpy(out + b * static_cast<int64_t>(sizeof(block)), &block, sizeof(block));
  }
}

// A transposed slice: whole rows of it, since they may be blocks, turned.
void ReadTurned(const WeightSource& source, float* out) {
  const WeightSpec& spec = *source.spec;
  const auto outputs = static_cast<int64_t>(TransposedOutputs(source));
  std::vector<float> inputs(static_cast<size_t>(outputs));
  const uint64_t first = static_cast<uint64_t>(spec.slice) * SliceElements(source);
  for (int64_t j = 0; j < spec.cols; ++j) {
    quant::DequantizeRow(*source.tensor->dtype,
                         At(source, first + static_cast<uint64_t>(j * outputs)), outputs,
                         inputs.data());
    for (int32_t i = 0; i < spec.rows; ++i) {
      out[int64_t{i} * spec.cols + j] = inputs[RowOf(spec, i)];
    }
  }
}

// The row's blocks as the stored type has them; `joined` is room for a row of MXFP4.
const std::byte* StoredRow(const WeightSource& source, int32_t row,
                           std::vector<std::byte>& joined) {
  if (source.scales == nullptr) return At(source, RowIndex(source, row));
  joined.resize(static_cast<size_t>(RowBytes(Info(DType::kMXFP4), source.spec->cols)));
  JoinMxRow(source, row, joined.data());
  return joined.data();
}

void ReadRow(const WeightSource& source, int32_t row, std::vector<std::byte>& joined, float* out) {
  quant::DequantizeRow(StoredType(source), StoredRow(source, row, joined), source.spec->cols, out);
}

bool RepacksAsQ8_0(DType dtype) { return dtype == DType::kMXFP4 || dtype == DType::kIQ4_XS; }

}  // namespace

DType StoredType(const WeightSource& source) {
  return source.scales == nullptr ? *source.tensor->dtype : DType::kMXFP4;
}

bool Fits(const WeightSource& source) {
  const WeightSpec& spec = *source.spec;
  if (spec.rows < 1 || spec.cols < 1 || spec.slices < 1 || spec.slice < 0 ||
      spec.slice >= spec.slices || spec.first_row < 0 || spec.row_block < 1 ||
      spec.row_stride < spec.row_block) {
    return false;
  }
  if (source.scales == nullptr && !source.tensor->dtype) return false;
  const uint64_t elements = Elements(source);
  if (elements == 0 || elements % static_cast<uint64_t>(spec.slices) != 0) return false;
  const uint64_t slice = SliceElements(source);
  const auto cols = static_cast<uint64_t>(spec.cols);
  const uint64_t last = RowOf(spec, spec.rows - 1);
  if (source.scales != nullptr) {
    return !spec.transposed && cols % kMxBlock == 0 && slice % cols == 0 && last < slice / cols &&
           source.scales->data.size() == elements / kMxBlock;
  }
  const auto block = static_cast<uint64_t>(Info(*source.tensor->dtype).block_elems);
  if (spec.transposed) {
    const uint64_t outputs = source.tensor->shape.empty() ? 0 : TransposedOutputs(source);
    return outputs > 0 && outputs % block == 0 && slice % outputs == 0 && last < outputs &&
           cols <= slice / outputs;
  }
  return cols % block == 0 && slice % cols == 0 && last < slice / cols;
}

const std::byte* ContiguousRows(const WeightSource& source) {
  const WeightSpec& spec = *source.spec;
  const bool together = spec.row_stride == spec.row_block || spec.rows <= spec.row_block;
  if (source.scales != nullptr || spec.transposed || !together) return nullptr;
  return At(source, RowIndex(source, 0));
}

DType LoadType(const WeightSource& source, std::optional<DType> quantization,
               const kernels::BlockOps& ops) {
  const WeightSpec& spec = *source.spec;
  if (spec.full) return DType::kF32;
  DType dtype = StoredType(source);
  if (spec.transposed && !IsFloat(dtype)) dtype = DType::kF32;
  const auto packs = [&](DType d) { return ops.can_pack(d, spec.rows, spec.cols); };
  if (quantization && IsFloat(dtype) && spec.rows > 1 && packs(*quantization)) {
    return *quantization;
  }
  if (packs(dtype)) return dtype;
  if (RepacksAsQ8_0(dtype) && packs(DType::kQ8_0)) return DType::kQ8_0;
  return packs(DType::kF16) ? DType::kF16 : dtype;
}

void ReadRows(const WeightSource& source, float* out) {
  const WeightSpec& spec = *source.spec;
  if (spec.transposed) return ReadTurned(source, out);
  std::vector<std::byte> joined;
  for (int32_t row = 0; row < spec.rows; ++row) {
    ReadRow(source, row, joined, out + int64_t{row} * spec.cols);
  }
}

Result<std::vector<std::byte>> MakeRows(const WeightSource& source, DType dtype) {
  const WeightSpec& spec = *source.spec;
  const DType stored = StoredType(source);
  const auto row_bytes = static_cast<size_t>(RowBytes(Info(dtype), spec.cols));
  std::vector<std::byte> rows(row_bytes * static_cast<size_t>(spec.rows));
  if (spec.transposed) {
    std::vector<float> values(static_cast<size_t>(spec.rows) * static_cast<size_t>(spec.cols));
    ReadTurned(source, values.data());
    for (int32_t row = 0; row < spec.rows; ++row) {
      quant::QuantizeRow(dtype, values.data() + int64_t{row} * spec.cols, spec.cols,
                         rows.data() + static_cast<size_t>(row) * row_bytes);
    }
    return rows;
  }
  std::vector<std::byte> joined;
  std::vector<float> values(static_cast<size_t>(spec.cols));
  for (int32_t row = 0; row < spec.rows; ++row) {
    std::byte* const out = rows.data() + static_cast<size_t>(row) * row_bytes;
    if (stored == dtype) {
      std::memcpy(out, StoredRow(source, row, joined), row_bytes);
    } else if (dtype == DType::kQ8_0 && RepacksAsQ8_0(stored)) {
      if (!quant::RepackAsQ8_0(stored, StoredRow(source, row, joined), spec.cols, out)) {
        return Fail(ErrorCode::kUnsupported, "unsupported_weight", spec.name,
                    "tensor {}: a {} scale is above 2^15, which these kernels cannot hold",
                    spec.name, Info(stored).name);
      }
    } else {
      ReadRow(source, row, joined, values.data());
      quant::QuantizeRow(dtype, values.data(), spec.cols, out);
    }
  }
  return rows;
}

}  // namespace vivace::model
