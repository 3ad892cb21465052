#include "kernels/row_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vivace::kernels {
namespace {

// Less work than this is done before another thread could help.
constexpr int64_t kMinParallelValues = 16384;
constexpr int64_t kValuesPerItem = 4096;

// Calls body(first, last) for runs of rows that add up to [0, rows).
template <typename Body>
void ForRows(int64_t rows, int64_t cols, ThreadPool& pool, const Body& body) {
  if (rows * cols < kMinParallelValues) {
    body(int64_t{0}, rows);
    return;
  }
  const int64_t run = std::max<int64_t>(1, kValuesPerItem / cols);
  pool.ForEach((rows + run - 1) / run,
               [&](int64_t i) { body(i * run, std::min((i + 1) * run, rows)); });
}

// As above over single values of rows, for ops that are made of one value at a time.
template <typename Body>
void ForValues(int64_t rows, int64_t cols, ThreadPool& pool, const Body& body) {
  const int64_t parts = (cols + kValuesPerItem - 1) / kValuesPerItem;
  ForRows(rows * parts, std::min(cols, kValuesPerItem), pool, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % parts * kValuesPerItem;
      body(i / parts, begin, std::min(begin + kValuesPerItem, cols));
    }
  });
}

// Sums in eight lanes: a fixed order that a compiler may keep in vectors of any width.
constexpr int kLanes = 8;

float Total(const float (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <typename Value>
float Sum(int32_t count, const Value& value) {
  float lanes[kLanes] = {};
  int32_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += value(k + j);
  }
  for (int j = 0; k < count; ++k, ++j) lanes[j] += value(k);
  return Total(lanes);
}

// put(k, y) for each value y of norm(x).
template <typename Put>
void ApplyNorm(const Norm& norm, const float* x, int32_t cols, const Put& put) {
  const auto count = static_cast<float>(cols);
  float mean = 0;
  if (norm.kind == NormKind::kLayer) mean = Sum(cols, [&](int32_t k) { return x[k]; }) / count;
  const float squares = Sum(cols, [&](int32_t k) { return (x[k] - mean) * (x[k] - mean); });
  const float scale = 1.0f / std::sqrt(squares / count + norm.eps);
  if (norm.bias == nullptr) {
    for (int32_t k = 0; k < cols; ++k) put(k, (x[k] - mean) * scale * norm.weight[k]);
  } else {
    for (int32_t k = 0; k < cols; ++k) {
      put(k, (x[k] - mean) * scale * norm.weight[k] + norm.bias[k]);
    }
  }
}

// e^x within 2e-7 of itself, for loops that are to be vectors. 1e-38 and 1e38 at the ends.
inline float Exp(float x) {
  x = x < -87.0f ? -87.0f : x;  // a NaN stays
  x = x > 88.0f ? 88.0f : x;
  constexpr float kMagic = 0x1.8p23f + 127;  // brings round(t) + 127 into the low bits
  const float t = x * 1.44269504f + kMagic;
  const float n = t - kMagic;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>(std::bit_cast<uint32_t>(t) << 23);
}

inline float Tanh(float x) {
  const float e = Exp(-2.0f * std::abs(x));
  return std::copysign((1.0f - e) / (1.0f + e), x);
}

inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

inline float GeluTanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608f;
  return 0.5f * x * (1.0f + Tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

// x times the normal distribution function, by Abramowitz and Stegun 7.1.26 (within 1.5e-7).
inline float Gelu(float x) {
  const float z = std::abs(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * (p * t) * Exp(-z * z);  // 1 - the function at |x|
  return x * (x < 0 ? tail : 1.0f - tail);
}

inline float Relu2(float x) {
  const float positive = x < 0 ? 0.0f : x;
  return positive * positive;
}

inline float SwigluClamped(const ActivationSpec& spec, float gate, float up) {
  const float g = gate > spec.limit ? spec.limit : gate;
  float u = up > spec.limit ? spec.limit : up;
  u = u < -spec.limit ? -spec.limit : u;
  return (u + 1.0f) * (g / (1.0f + Exp(-spec.alpha * g)));
}

template <typename Act>
void Apply(const Act& act, bool gated, const float* raw, int32_t rows, int32_t ffn, float* out,
           ThreadPool& pool) {
  ForValues(rows, ffn, pool, [&](int64_t row, int64_t begin, int64_t end) {
    const float* gate = raw + row * (gated ? 2 : 1) * ffn;
    const float* up = gate + ffn;
    float* to = out + row * ffn;
    if (gated) {
      for (int64_t k = begin; k < end; ++k) to[k] = act(gate[k]) * up[k];
    } else {
      for (int64_t k = begin; k < end; ++k) to[k] = act(gate[k]);
    }
  });
}

}  // namespace

void NormRow(const Norm& norm, const float* x, int32_t cols, float* out) {
  ApplyNorm(norm, x, cols, [&](int32_t k, float y) { out[k] = y; });
}

void NormRows(const Norm& norm, const float* x, int64_t stride, const int32_t* index, int32_t rows,
              int32_t cols, float* out, ThreadPool& pool) {
  ForRows(rows, cols, pool, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const float* row = x + (index != nullptr ? index[i] : i) * stride;
      if (norm.present()) {
        NormRow(norm, row, cols, out + i * cols);
      } else {
        std::copy_n(row, cols, out + i * cols);
      }
    }
  });
}

void AddRows(const AddRowsArgs& args, ThreadPool& pool) {
  const int32_t cols = args.cols;
  ForRows(args.num_rows, cols, pool, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const float* y = args.y + i * cols;
      float* x = args.x + i * cols;
      if (args.norm.present()) {
        ApplyNorm(args.norm, y, cols, [&](int32_t k, float v) { x[k] += args.scale * v; });
      } else {
        for (int32_t k = 0; k < cols; ++k) x[k] += args.scale * y[k];
      }
    }
  });
}

void Activate(const ActivationSpec& activation, bool gated, const float* raw, int32_t rows,
              int32_t ffn, float* out, ThreadPool& pool) {
  switch (activation.kind) {
    case Activation::kSilu:
      return Apply([](float x) { return Silu(x); }, gated, raw, rows, ffn, out, pool);
    case Activation::kGeluTanh:
      return Apply([](float x) { return GeluTanh(x); }, gated, raw, rows, ffn, out, pool);
    case Activation::kGelu:
      return Apply([](float x) { return Gelu(x); }, gated, raw, rows, ffn, out, pool);
    case Activation::kRelu2:
      return Apply([](float x) { return Relu2(x); }, gated, raw, rows, ffn, out, pool);
    case Activation::kSwigluClamped:
      break;
  }
  ForValues(rows, ffn, pool, [&](int64_t row, int64_t begin, int64_t end) {
    const float* gate = raw + row * 2 * ffn;
    const float* up = gate + ffn;
    for (int64_t k = begin; k < end; ++k) {
      out[row * ffn + k] = SwigluClamped(activation, gate[k], up[k]);
    }
  });
}

void GateRows(const float* gates, int32_t rows, int32_t cols, float* y, ThreadPool& pool) {
  ForValues(rows, cols, pool, [&](int64_t row, int64_t first, int64_t last) {
    const int64_t at = row * cols;
    for (int64_t k = at + first; k < at + last; ++k) y[k] /= 1.0f + Exp(-gates[k]);
  });
}

void SoftcapRows(float cap, int32_t rows, int32_t cols, int64_t stride, float* x,
                 ThreadPool& pool) {
  ForValues(rows, cols, pool, [&](int64_t row, int64_t begin, int64_t end) {
    float* values = x + row * stride;
    for (int64_t k = begin; k < end; ++k) values[k] = cap * Tanh(values[k] / cap);
  });
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace vivace::kernels
