// A recurrent layer in plain loops, as its definition has it: S is [key_dim, value_dim].
#include <algorithm>
#include <cmath>

#include "kernels/recurrent.h"
#include "kernels/row_ops.h"

namespace vivace::kernels::reference {
namespace {

float Silu(float x) { return x * Sigmoid(x); }

void ConvolveChannel(const ConvChannels& conv, int32_t channel) {
  const int32_t last = conv.width - 1;
  float inputs[RecurrentGeometry::kMaxConvWidth];
  for (int32_t j = 0; j < last; ++j) inputs[j] = conv.state[j * conv.tap_stride + channel];
  for (int32_t row = 0; row < conv.rows; ++row) {
    const int64_t at = row * conv.stride + channel;
    inputs[last] = conv.out != nullptr ? conv.b[at] * conv.x[at] : conv.x[at];
    float sum = conv.bias != nullptr ? conv.bias[channel] : 0.0f;
    for (int32_t j = 0; j <= last; ++j) {
      sum += conv.weight[j * conv.tap_stride + channel] * inputs[j];
    }
    if (conv.out != nullptr) {
      conv.out[row * conv.out_stride + channel] = conv.c[at] * sum;
    } else {
      conv.x[at] = Silu(sum);
    }
    std::copy(inputs + 1, inputs + conv.width, inputs);
  }
  for (int32_t j = 0; j < last; ++j) conv.state[j * conv.tap_stride + channel] = inputs[j];
}

void Convolve(const ConvChannels& conv) {
  for (int32_t channel = 0; channel < conv.channels; ++channel) ConvolveChannel(conv, channel);
}

void Normalize(const float* x, int32_t count, float scale, float* out) {
  float squares = 0;
  for (int32_t i = 0; i < count; ++i) squares += x[i] * x[i];
  for (int32_t i = 0; i < count; ++i) out[i] = x[i] / std::sqrt(squares + kKeyEps) * scale;
}

// A token of one column of S: its value in, what it reads out.
float AdvanceColumn(const HeadRun& run, const TokenGates& gates, const float* q, const float* k,
                    float v, float* state) {
  float held = 0, y = 0;
  for (int32_t i = 0; i < run.key_dim; ++i) {
    float& s = state[i * run.value_dim];
    s *= gates.decay;
    held += s * k[i];
  }
  if (run.kind == RecurrentKind::kMamba2) held = 0;
  for (int32_t i = 0; i < run.key_dim; ++i) {
    float& s = state[i * run.value_dim];
    s += k[i] * (gates.input * (v - held));
    y += s * q[i];
  }
  return y;
}

void AdvanceToken(const HeadRun& run, int32_t token) {
  const bool delta = run.kind == RecurrentKind::kGatedDelta;
  const int64_t at = token * run.stride;
  const float *q = run.q + at, *k = run.k + at, *v = run.v + at, *z = run.z + at;
  float unit_q[RecurrentGeometry::kMaxKeyDim], unit_k[RecurrentGeometry::kMaxKeyDim];
  if (delta) {
    Normalize(q, run.key_dim, 1.0f / std::sqrt(static_cast<float>(run.key_dim)), unit_q);
    Normalize(k, run.key_dim, 1.0f, unit_k);
    q = unit_q;
    k = unit_k;
  }
  float* const out = run.out + token * run.out_stride;
  for (int32_t c = 0; c < run.value_dim; ++c) {
    out[c] = AdvanceColumn(run, run.gates[token], q, k, v[c], run.state + c);
    if (!delta) out[c] += run.skip * v[c];
  }
  if (delta && run.norm.present()) NormRow(run.norm, out, run.value_dim, out);
  for (int32_t c = 0; c < run.value_dim; ++c) out[c] *= Silu(z[c]);
}

void Advance(const HeadRun& run) {
  for (int32_t token = 0; token < run.tokens; ++token) AdvanceToken(run, token);
}

}  // namespace

constinit const RecurrentKernels kRecurrentKernels = {Convolve, Advance};

}  // namespace vivace::kernels::reference
