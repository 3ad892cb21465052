#include "load/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace vivace::load {

uint64_t Random::Bits() {
  const auto words = Philox(seed_, {static_cast<uint32_t>(drawn_), static_cast<uint32_t>(purpose_),
                                    static_cast<uint32_t>(purpose_ >> 32),
                                    // Apart from the sampler's draws, whose last word is 0.
                                    0x6C6F6164u ^ static_cast<uint32_t>(drawn_ >> 32)});
  ++drawn_;
  return uint64_t{words[0]} << 32 | words[1];
}

double Random::Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

size_t Random::Below(size_t bound) {
  return std::min(bound - 1, static_cast<size_t>(Uniform() * static_cast<double>(bound)));
}

double Random::Normal() {
  const double radius = std::sqrt(-2 * std::log1p(-Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

double Random::Gamma(double shape) {
  if (shape < 1) return Gamma(shape + 1) * std::pow(1 - Uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = Normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log1p(-Uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace vivace::load
