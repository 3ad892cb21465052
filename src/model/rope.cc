#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace vivace::model {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

double Frequency(double theta, const RopeSpec& rope, int pair) {
  return std::pow(theta, -2.0 * pair / rope.dims);
}

// Dynamic NTK scaling: a prompt longer than the model's context slows all waves down, the longest
// by as much as it is longer.
double DynamicTheta(const RopeSpec& rope, int64_t tokens) {
  if (rope.scaling != RopeScaling::kDynamic || tokens <= rope.original_context || rope.dims <= 2) {
    return double{rope.theta};
  }
  const double stretch = double{rope.factor} * static_cast<double>(tokens) / rope.original_context -
                         (double{rope.factor} - 1.0);
  return double{rope.theta} * std::pow(stretch, rope.dims / (rope.dims - 2.0));
}

// Llama 3.1: long waves are slowed by `factor`, short ones kept, those between blended.
double Llama3Frequency(const RopeSpec& rope, double frequency) {
  const double wavelength = kTwoPi / frequency;
  const double context = rope.original_context;
  if (wavelength < context / rope.high_freq_factor) return frequency;
  if (wavelength > context / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (context / wavelength - rope.low_freq_factor) /
                        (double{rope.high_freq_factor} - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

// YaRN: the pair (as a real number) that turns `rotations` times over the original context.
double YarnPair(const RopeSpec& rope, double rotations) {
  return rope.dims * std::log(rope.original_context / (rotations * kTwoPi)) /
         (2.0 * std::log(double{rope.theta}));
}

// YaRN: 1 where a pair is left alone (it turns fast), 0 where it is interpolated.
struct YarnRamp {
  double low;
  double high;

  explicit YarnRamp(const RopeSpec& rope)
      : low(YarnPair(rope, rope.beta_fast)), high(YarnPair(rope, rope.beta_slow)) {
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, rope.dims - 1.0);
    if (low == high) high += 0.001;  // as transformers does, so that the ramp is a step
  }
  double Kept(int pair) const { return 1.0 - std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

}  // namespace

std::vector<double> InverseFrequencies(const RopeSpec& rope, int64_t tokens) {
  std::vector<double> frequencies(static_cast<size_t>(rope.dims / 2));
  if (frequencies.empty()) return frequencies;
  std::optional<YarnRamp> ramp;
  if (rope.scaling == RopeScaling::kYarn) ramp.emplace(rope);
  const double theta = DynamicTheta(rope, tokens);
  const std::vector<float>& divisors = rope.scaling != RopeScaling::kLongrope ? rope.freq_divisors
                                       : tokens > rope.original_context       ? rope.long_divisors
                                                                              : rope.short_divisors;
  for (int pair = 0; pair < rope.dims / 2; ++pair) {
    double frequency = Frequency(theta, rope, pair);
    switch (rope.scaling) {
      case RopeScaling::kNone:
      case RopeScaling::kDynamic:   // changed theta
      case RopeScaling::kLongrope:  // has divisors
        break;
      case RopeScaling::kLinear:
        frequency /= rope.factor;
        break;
      case RopeScaling::kLlama3:
        frequency = Llama3Frequency(rope, frequency);
        break;
      case RopeScaling::kYarn: {
        const double kept = ramp->Kept(pair);
        frequency = frequency / rope.factor * (1.0 - kept) + frequency * kept;
        break;
      }
    }
    if (!divisors.empty()) frequency /= divisors[static_cast<size_t>(pair)];
    frequencies[static_cast<size_t>(pair)] = frequency;
  }
  return frequencies;
}

double YarnMscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double AttentionFactor(const RopeSpec& rope) {
  if (rope.scaling != RopeScaling::kYarn && rope.scaling != RopeScaling::kLongrope) return 1.0;
  if (rope.attention_factor != 0.0f) return double{rope.attention_factor};
  if (rope.scaling == RopeScaling::kYarn) return YarnMscale(rope.factor);
  if (rope.factor <= 1.0f) return 1.0;
  return std::sqrt(1.0 + std::log(double{rope.factor}) / std::log(double(rope.original_context)));
}

}  // namespace vivace::model
