// Rotary embedding frequencies of a RopeSpec, as Hugging Face transformers computes them.
// Pure functions; called once at load. Double precision inside.
#pragma once

#include <cstdint>
#include <vector>

#include "model/spec.h"

namespace vivace::model {

// Radians per position of each rotated pair, dims / 2 of them: scaling and freq_divisors applied.
// `tokens`: of the prompt, which longrope and dynamic scaling look at; 0: a short one.
std::vector<double> InverseFrequencies(const RopeSpec& rope, int64_t tokens = 0);

// Multiplies cos and sin: 1 but for yarn and longrope.
double AttentionFactor(const RopeSpec& rope);

// Yarn's default attention factor for a scaling factor: 0.1 mscale ln(factor) + 1, or 1 if
// factor <= 1.
double YarnMscale(double factor, double mscale = 1.0);

}  // namespace vivace::model
