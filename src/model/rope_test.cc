#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vivace::model {
namespace {

// What rope_oracle.py computed, independently, with numpy.
struct OracleCase {
  RopeScaling scaling;
  int32_t dims;
  float theta;
  float factor;
  int32_t original_context;
  float a, b;  // llama3: low and high frequency factors; yarn: beta fast and slow
  double attention_factor;
  std::vector<double> frequencies;
};

const std::vector<OracleCase>& Oracle() {
  static const std::vector<OracleCase> cases = {
#include "model/rope_oracle.inc"
  };
  return cases;
}

RopeSpec SpecOf(const OracleCase& c) {
  RopeSpec rope;
  rope.dims = c.dims;
  rope.theta = c.theta;
  rope.scaling = c.scaling;
  rope.factor = c.factor;
  rope.original_context = c.original_context;
  if (c.scaling == RopeScaling::kLlama3) {
    rope.low_freq_factor = c.a;
    rope.high_freq_factor = c.b;
  } else if (c.scaling == RopeScaling::kYarn) {
    rope.beta_fast = c.a;
    rope.beta_slow = c.b;
  }
  return rope;
}

TEST(Rope, AgreesWithTheOracle) {
  ASSERT_GE(Oracle().size(), 9u);
  for (const OracleCase& c : Oracle()) {
    const RopeSpec rope = SpecOf(c);
    const auto got = InverseFrequencies(rope);
    ASSERT_EQ(got.size(), c.frequencies.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i] / c.frequencies[i], 1.0, 1e-9)
          << "kind " << static_cast<int>(c.scaling) << ", dims " << c.dims << ", pair " << i;
    }
    EXPECT_NEAR(AttentionFactor(rope), c.attention_factor, 1e-9);
  }
}

TEST(Rope, EveryKindThatIgnoresThePromptHasACase) {
  for (const auto kind :
       {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kLlama3, RopeScaling::kYarn}) {
    bool found = false;
    for (const OracleCase& c : Oracle()) found |= c.scaling == kind;
    EXPECT_TRUE(found) << static_cast<int>(kind);
  }
}

TEST(Rope, DivisorsDivide) {
  RopeSpec rope = SpecOf(Oracle()[0]);
  const auto plain = InverseFrequencies(rope);
  rope.freq_divisors.assign(plain.size(), 1.0f);
  rope.freq_divisors[3] = 8.0f;
  const auto divided = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_DOUBLE_EQ(divided[i], i == 3 ? plain[i] / 8.0 : plain[i]);
  }
}

// A GGUF of Llama 3.1 stores the llama3 scaling as divisors: both ways must say the same.
TEST(Rope, DivisorsCanExpressLlama3) {
  const OracleCase* llama3 = nullptr;
  for (const OracleCase& c : Oracle()) {
    if (c.scaling == RopeScaling::kLlama3) llama3 = &c;
  }
  ASSERT_NE(llama3, nullptr);
  RopeSpec rope = SpecOf(*llama3);
  rope.scaling = RopeScaling::kNone;
  const auto plain = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    rope.freq_divisors.push_back(static_cast<float>(plain[i] / llama3->frequencies[i]));
  }
  const auto divided = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(divided[i] / llama3->frequencies[i], 1.0, 1e-6);
  }
}

TEST(Rope, AttentionFactorIsYarns) {
  RopeSpec rope;
  rope.dims = 64;
  rope.factor = 4.0f;
  EXPECT_EQ(AttentionFactor(rope), 1.0);
  rope.scaling = RopeScaling::kYarn;
  EXPECT_NEAR(AttentionFactor(rope), 0.1 * std::log(4.0) + 1.0, 1e-12);
  rope.attention_factor = 1.5f;
  EXPECT_EQ(AttentionFactor(rope), 1.5);
  EXPECT_EQ(YarnMscale(0.5), 1.0);
}

// Numbers of transformers' _compute_dynamic_ntk_parameters, worked out by hand.
TEST(Rope, DynamicStretchesThetaForLongPrompts) {
  RopeSpec rope;
  rope.dims = 8;
  rope.theta = 10000.0f;
  rope.scaling = RopeScaling::kDynamic;
  rope.factor = 2.0f;
  rope.original_context = 512;
  EXPECT_EQ(InverseFrequencies(rope, 0)[1], InverseFrequencies(rope, 512)[1]);
  EXPECT_NEAR(InverseFrequencies(rope, 512)[1], 0.1, 1e-12);
  // 2 * 1024 / 512 - 1 = 3, to the power of 8 / 6: theta is 43267.487.
  const auto stretched = InverseFrequencies(rope, 1024);
  EXPECT_EQ(stretched[0], 1.0);
  EXPECT_NEAR(stretched[1], std::pow(10000.0 * std::pow(3.0, 4.0 / 3.0), -0.25), 1e-12);
  EXPECT_NEAR(stretched[1], 0.0693361, 1e-6);
  EXPECT_EQ(AttentionFactor(rope), 1.0);
}

TEST(Rope, LongropeDividesByThePromptsLength) {
  RopeSpec rope;
  rope.dims = 4;
  rope.theta = 100.0f;
  rope.scaling = RopeScaling::kLongrope;
  rope.factor = 32.0f;
  rope.original_context = 4096;
  rope.short_divisors = {1.0f, 2.0f};
  rope.long_divisors = {4.0f, 5.0f};
  EXPECT_NEAR(InverseFrequencies(rope, 4096)[1], 0.1 / 2, 1e-12);
  EXPECT_NEAR(InverseFrequencies(rope, 4097)[0], 1.0 / 4, 1e-12);
  EXPECT_NEAR(InverseFrequencies(rope, 4097)[1], 0.1 / 5, 1e-12);
  // sqrt(1 + ln 32 / ln 4096) = sqrt(1 + 5 / 12)
  EXPECT_NEAR(AttentionFactor(rope), std::sqrt(17.0 / 12.0), 1e-7);
  rope.attention_factor = 1.25f;
  EXPECT_EQ(AttentionFactor(rope), 1.25);
  rope.attention_factor = 0.0f;
  rope.factor = 1.0f;
  EXPECT_EQ(AttentionFactor(rope), 1.0);
}

// gpt-oss: the ramp's ends are not whole pairs. dims 16, theta 10000, 128 tokens: the ends are
// 16 ln(128 / (b 2 pi)) / (2 ln 10000) = -0.392 (so 0) and 2.618 for b = 32 and 1.
TEST(Rope, YarnWithoutTruncation) {
  RopeSpec rope;
  rope.dims = 16;
  rope.theta = 10000.0f;
  rope.scaling = RopeScaling::kYarn;
  rope.factor = 4.0f;
  rope.original_context = 128;
  rope.truncate = false;
  const double high = 16 * std::log(128 / (2 * std::acos(-1.0))) / (2 * std::log(10000.0));
  EXPECT_NEAR(high, 2.618, 1e-3);
  const auto got = InverseFrequencies(rope);
  for (int pair = 0; pair < 8; ++pair) {
    const double plain = std::pow(10000.0, -2.0 * pair / 16);
    const double kept = 1.0 - std::min(pair / high, 1.0);
    EXPECT_NEAR(got[static_cast<size_t>(pair)], plain * kept + plain / 4 * (1 - kept), 1e-12);
  }
  rope.truncate = true;
  EXPECT_NE(InverseFrequencies(rope)[1], got[1]);
}

TEST(Rope, NoDimsNoFrequencies) { EXPECT_TRUE(InverseFrequencies(RopeSpec{}).empty()); }

}  // namespace
}  // namespace vivace::model
