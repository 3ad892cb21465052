#include <cmath>
#include <limits>

#include "kernels/vocab_tiers.h"

namespace vivace::kernels::reference {
namespace {

float Max(const float* x, int32_t count) {
  float best = -std::numeric_limits<float>::infinity();
  for (int32_t i = 0; i < count; ++i) {
    if (std::isnan(x[i]) || x[i] == std::numeric_limits<float>::infinity()) return NAN;
    if (x[i] > best) best = x[i];
  }
  return best;
}

int32_t Find(const float* x, int32_t count, float value) {
  for (int32_t i = 0; i < count; ++i) {
    if (x[i] == value) return i;
  }
  return -1;
}

double SumExp(const float* x, int32_t count, float shift, float scale) {
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += std::exp((x[i] - shift) * scale);
  return sum;
}

int32_t CountAbove(const float* x, int32_t count, float value) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; ++i) n += x[i] > value;
  return n;
}

int32_t Collect(const float* x, int32_t count, float floor, int32_t* ids, float* values) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (!(x[i] >= floor)) continue;
    ids[n] = i;
    values[n++] = x[i];
  }
  return n;
}

double Weigh(float* x, int32_t count, float shift, float scale) {
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    x[i] = std::exp((x[i] - shift) * scale);
    if (x[i] < std::numeric_limits<float>::min()) x[i] = 0;
    sum += x[i];
  }
  return sum;
}

double SumAbove(const float* x, int32_t count, float value) {
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (x[i] > value) sum += x[i];
  }
  return sum;
}

int32_t KeepBetween(const float* x, int32_t count, float low, float high, float* out) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; ++i) {
    const float value = x[i];
    if (low < value && value <= high) out[n++] = value;
  }
  return n;
}

int32_t KeepPairs(int32_t* ids, float* x, int32_t count, float floor) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (!(x[i] >= floor)) continue;
    ids[n] = ids[i];
    x[n++] = x[i];
  }
  return n;
}

}  // namespace

constinit const VocabOps kVocabOps = {Max,   Find,     SumExp,      CountAbove, Collect,
                                      Weigh, SumAbove, KeepBetween, KeepPairs};

}  // namespace vivace::kernels::reference
